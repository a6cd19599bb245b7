"""The git object names of the files of the density-estimation benchmarks, in the state that is downloaded.

Anyone can compare them with ``git ls-tree -r`` in a clone of the collection.
"""

CHECKSUMS = {  # train, valid, test
    "nltcs": (
        "8c47cc2d814ec699f6d509d4a77dd10ffa2f8a33",
        "717b851a5d543747dd0e7eab65af54b01ecb52ff",
        "127d1f67947bf06d872b2a6c5178374727df8233",
    ),
    "msnbc": (
        "db2f5c53ef25794a0f14180d388538a62cfec39e",
        "c1feb3683cd12e8c589adb71c34639c9af562b36",
        "49fd68acfdb4772356bcba14a6e0a2470d641d7a",
    ),
    "kdd": (
        "09af7e69c90a2e3bcff23f794ecb141f189c4671",
        "177900b0f28fc85c9fabe1369223af846ab36887",
        "087a5804bac832459e4221b0e8663039d1b5ee69",
    ),
    "plants": (
        "3e6263dd8dc8ea93d37db22b05334b0a9b862f29",
        "1a4fe9824e52a573ff7386786caf765f804cdf19",
        "e1e04c157a53499fc94c67279cc98963ab38c156",
    ),
    "baudio": (
        "53b36fd25aab0415e83d7d0b68979404b11a0eb0",
        "049656e05dec8a816429a2fb250b5ed1f7168eae",
        "3e07f701215c85bd4368828074567218c8e1ab9b",
    ),
    "bnetflix": (
        "606d88a4cde4259f0f88f803c8f19a6452ee6137",
        "404b00dcc9a8907cd50b3872d5944a5bc5870a65",
        "f6cacdc6cf931a2b5ab6ac95179645fe4cb9380c",
    ),
    "jester": (
        "bfb2d367627f73eccea33606e8f0633970d7a59a",
        "48e7a863427503785fe8509c7261cb821cee6c68",
        "cb8e29d787084cf9d511355fbc9ac747ca2860ec",
    ),
    "accidents": (
        "cefacb1816aec82768b2786006b3999d008def9f",
        "e7ac288dfa26a82b3dcf75ebe0812be98672d459",
        "25ff1e5d35f133d0f28f1b511c62b58761e9ca68",
    ),
    "mushrooms": (
        "563ba3a28eb60c63fc39b46134d5914738e7a09e",
        "9f125c50d027c89cc56a704c5b3c4db6bb165893",
        "1372a949dbcf6bc62e19885d59dac25f8f88477f",
    ),
    "adult": (
        "101be82a729802294177e86594095fa14fc5d5ca",
        "1d1f0853a75e2db49968c3380d5db92692c7d26a",
        "ca1a6642228f20971897abba6fb5ddc620bc80a3",
    ),
    "connect4": (
        "93b42c60aeca67df76fd821ef0ae5b8ceb8b8b01",
        "71f641a9b87507bb3e9f930c455748f118a6c9e0",
        "088e6da63a6e9d5cab1af67518fd6b202cef6f51",
    ),
    "ocr_letters": (
        "5deb8ce789bfb4f94849b1b5f57e7c841ec9f538",
        "ebbd09fef2383f0b507ee4addd17f0c5f3b4313b",
        "25b4cdcc1b5fb8602a4baacf7df16bd15947565c",
    ),
    "tretail": (
        "52c82ac6a4c9c9a301bcc461335aac0f14c6d682",
        "82682d4997829b5d991e56770fd6a6f447553d8b",
        "c785a1a267b5708123abd24bbd9792be2a4ba7e1",
    ),
    "rcv1": (
        "25ee49d9df5566669d5994db5acf32844d8f4f7b",
        "890d4558bcb738690ef775a4fbdeb7ef9511d377",
        "0d9b096f4b8a62dec4634f3f87a73e292b5cffc8",
    ),
    "pumsb_star": (
        "eca57d4a6cdc40abab4114af140729006633de75",
        "91be6ddbef7e241f9cefcb1ae3e3ffabf3044b07",
        "4fef8f225876bd9aa1c97386af884d5e4505350b",
    ),
    "dna": (
        "b729aff6209c07a4c60cb8d6393417af56fb244e",
        "15ffc8398c8ff51f9b7967446a925470a7e34734",
        "351fb8695ffb6ad5fd68dbed4748afd2e84bce54",
    ),
    "kosarek": (
        "cc9c549b93a3636961debfa59f0dc84df93d4c53",
        "a375a72b21c7bb919bce47da1b0537d3d146a186",
        "03b9a4b9629ec560d5a95dfb711a468d3d497fef",
    ),
    "msweb": (
        "939c8391c77e4764c74553b011ba7ced924337de",
        "75598aae35655b504670a3b65c311ec0a8f1a9e9",
        "b7c6804dd2ceba1fbff3308516f4748f5d989698",
    ),
    "book": (
        "7d0e649e4a8952c5454faa29db786d820865ca18",
        "e5a98a673dd4ed0f17fd4bec975a49ca122174b4",
        "90460f56e012e5225467a7459e8e0ba1d34d2679",
    ),
    "nips": (
        "583d8a180c2851793724e6d93f701966a079c817",
        "5e0137e210086a03b342a692705bd806b90f4c3c",
        "8787df72842c24be8af223ddd773998c5095b65f",
    ),
    "tmovie": (
        "7a356abaa5203208127ec5972cf3792bd8d225b3",
        "6920f039750d26f81132dc4a3a3c83b0f2eba8bb",
        "6b610f57b64eb51c4886bc7e29900d4d0bd45870",
    ),
    "cwebkb": (
        "569179f63ac2795dc1b65ab59165c58abedc49c7",
        "38539a369cbf1edcf4be0948c5977e7174a045fd",
        "98f636014c6a37f58243f71684548445df04d787",
    ),
    "cr52": (
        "5a132a4c54dc99a9966d9cf00fea63da5d88fa3d",
        "b35d4b1ab487e32843212bac3abf1a0fcd444a28",
        "4f63c683574db34184e89e8a9b850454a835c5fc",
    ),
    "c20ng": (
        "b5d2937144d0d1340f14c53c807b83f79be21bbd",
        "02fd664e4bbba182a6bf769e25ba7c238307da70",
        "c767f717205a4fe334815161a07e74a107ca9f2c",
    ),
    "moviereview": (
        "374aa022d8f1b9f138d7ba5901f20dbb020fcd39",
        "c305ba298fb3c1690b2f2a9bce2fbf4f05f4340c",
        "9a1c9e3cc2a8d7209c30924494b1428dd75f31f3",
    ),
    "bbc": (
        "1109ad0cb67d2f1e6fd964a1efe6827b1145d1dc",
        "ac5335071ced6f53a9990c79e5b397d973c00c07",
        "5782a91c6fe31e6989780651145a25cfda052214",
    ),
    "voting": (
        "35b1c0f712801ba8b0e894bbef5cb409f43e79d4",
        "7b28befbf753354b0b026efc05e009cd4c0b8236",
        "392e813fda8916024cfd2044b141ca73982b5133",
    ),
    "ad": (
        "b9dfaba77f2cea10c30a2c3c3d6c80f84d811334",
        "28dfd43ad1234f7b62ad4a560bd918327a6e39bf",
        "1a6ecad267097c75cfb9d9b9d36281bcb0c2a162",
    ),
}
