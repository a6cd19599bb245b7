"""What models are made of: the contract, scikit-learn's rules, training jobs, and choices by the size of the data."""
