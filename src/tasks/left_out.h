#pragma once

#include <string>
#include <vector>

#include "data/bad_samples.h"

namespace stretto::tasks {

/// Warns of samples that data.bad_samples = "skip" left out; says nothing of none.
void warn_of_left_out(const data::LeftOut& left_out);

/// Adds "training text: 2 bad samples left out: …" to the notes of FamilyTask::notes(), if there
/// are any. @param name  of the text
void add_note_of_left_out(const std::string& name, const data::LeftOut& left_out,
                          std::vector<std::string>& notes);

}  // namespace stretto::tasks
