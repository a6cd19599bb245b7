"""What networks are made of: inputs, layers, the plan of a walk, and the stack of several networks."""
