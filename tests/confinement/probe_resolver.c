#include "tests/confinement/probe.h"

int main(void)
{
  return probe_main(ROLE_RESOLVER);
}
