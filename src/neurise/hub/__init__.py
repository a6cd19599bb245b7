"""Model cards, and models on the Hugging Face Hub (extra ``hub``)."""
