"""Id formats: bits to values and back. One file per family of formats."""
