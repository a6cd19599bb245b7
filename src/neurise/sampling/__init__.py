"""Running the chain backwards. A fast form of a loop has the reference's signature and a test that ties it to it."""
