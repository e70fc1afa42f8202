#include "base/stdout.h"

#include <unistd.h>

#include <iostream>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace stretto {

void flush_stdout() {
  if (std::cout.flush()) return;
  throw Error(ExitCode::kIo, "cannot write to stdout", "is the disk full, or the pipe closed?");
}

std::string shown_on_stdout(std::string_view text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return terminal ? printable(text, std::numeric_limits<size_t>::max()) : std::string(text);
}

}  // namespace stretto
