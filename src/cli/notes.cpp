#include "cli/notes.h"

#include "base/log.h"

namespace stretto::cli {

void tell_notes(const config::Origins& origins) {
  for (const auto& note : origins.notes()) log::warn(note.text());
}

}  // namespace stretto::cli
