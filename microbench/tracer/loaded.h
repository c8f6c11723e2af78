/* Libraries that the program has loaded. */
#ifndef POPMODEL_LOADED_H
#define POPMODEL_LOADED_H

/* Handle of a library that has this symbol though the program does not share it; it was opened by
 * dlopen(), as interpreters do. NULL if there is none. This library must not have the symbol. */
void *library_with(const char *symbol);

/* Notes that the program has loaded the runtime of a device, such as a GPU: what it runs there is not
 * traced. Once in a process, and not in the handler of a signal. */
void devices_note(void);

#endif
