"""What all tests share."""

import torch

# Workers of a parallel test run share the cores; one thread each also keeps results the same wherever they run.
torch.set_num_threads(1)
