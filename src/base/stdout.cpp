#include "base/stdout.h"

#include <iostream>

#include "base/error.h"

namespace stretto {

void flush_stdout() {
  if (std::cout.flush()) return;
  throw Error(ExitCode::kIo, "cannot write to stdout", "is the disk full, or the pipe closed?");
}

}  // namespace stretto
