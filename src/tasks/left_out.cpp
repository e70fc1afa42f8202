#include "tasks/left_out.h"

#include "base/log.h"

namespace stretto::tasks {

void warn_of_left_out(const data::LeftOut& left_out) {
  if (left_out.count > 0) log::warn("data.bad_samples left out " + left_out.text());
}

void add_note_of_left_out(const std::string& name, const data::LeftOut& left_out,
                          std::vector<std::string>& notes) {
  if (left_out.count > 0) notes.push_back(name + ": left out " + left_out.text());
}

}  // namespace stretto::tasks
