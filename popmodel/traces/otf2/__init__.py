"""Archives of OTF2, such as Score-P writes: read (`archive_reader`) and written (`archive_writer`).

The work is done in the compiled core, through OTF2's own library (`libotf2`). What an archive tells
becomes the events that a Paraver trace of the same run has (`archive_regions`): nothing else knows
the format.
"""
