"""Id formats: bits to values and back. ``kinds`` describes each kind."""
