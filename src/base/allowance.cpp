#include "base/allowance.h"

#include "base/error.h"
#include "base/text.h"

namespace stretto {

void Allowance::exceed(std::string_view what) const {
  throw Error(ExitCode::kBadData,
              where_ + ": " + std::string(what) + " would take more than " + human_bytes(limit()) +
                  " of memory; " + human_bytes(num_read_) +
                  " are read, and 8 times as much and 256 MiB are allowed",
              "take the file from its publisher again: it is damaged, or made to exhaust memory");
}

}  // namespace stretto
