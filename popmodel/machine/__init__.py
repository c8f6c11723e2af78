"""What is known about a machine: profiles, their quantities, the topology of the hardware."""
