/* One line of the audit log as a refusal that people can act upon. Pure but for the stream. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum denial_format { DENIAL_TEXT, DENIAL_JSON };

/* Whether the line is a refusal (grants, ends and events are not; nor is what is no JSON object). */
bool denial_is_one(const char *line, size_t length);

/* Prints the refusal: when, who, what, why, the rule and the entry that would permit it. Nothing from the log reaches
   the terminal unescaped. False when the line is none. */
bool denial_print(const char *line, size_t length, enum denial_format format, FILE *stream);
