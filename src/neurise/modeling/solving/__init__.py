"""Ways to solve for conditionals where nothing has to be trained: one file per way; ``base`` has the contract."""
