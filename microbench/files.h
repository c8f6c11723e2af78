/* The texts of the system's files that tell the hardware and the limits put on this process. */
#ifndef POPMODEL_FILES_H
#define POPMODEL_FILES_H

#include "text.h"

/* Adds a JSON object of path and text. What does not exist, or may not be read, is left out. Under
 * the name "affinity", which is no path, it has the processors that this process may use. */
void files_add(struct text *);

#endif
