"""The engines that keep the registers of a fleet, one module each."""
