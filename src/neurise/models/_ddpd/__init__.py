"""Parts of DDPD."""
