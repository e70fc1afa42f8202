#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "runs/checkpointer.h"
#include "store/checkpoint.h"

namespace stretto::runs {

/// SHA-256 of each file of a tokenizer, and of what a family of tasks keeps beside it, such as the
/// names of labels: name -> 64 hex digits.
/// @param assets  name -> bytes, as `text::TokenizerPair` and tasks::FamilyTask have them
std::map<std::string, std::string> tokenizer_hashes(
    const std::map<std::string, std::string>& assets);

/// What a checkpoint that this program writes for a run says of where it comes from.
store::Provenance provenance_of(const RunIdentity& identity);

/// The first file that is not the one that something was trained with, and both hashes:
/// "joint.model: SHA-256 ab…, trained with SHA-256 cd…". Empty when all are the same, or one side
/// does not know its files. A file beside the tokenizer's (text::is_tokenizer_asset()) counts where
/// both sides have it: early checkpoints do not name it, and other runs with the same tokenizer may
/// have none.
std::string tokenizer_difference(const std::map<std::string, std::string>& trained_with,
                                 const std::map<std::string, std::string>& hashes);
std::string tokenizer_difference(const store::LoadedCheckpoint& checkpoint,
                                 const std::map<std::string, std::string>& hashes);

/// What differs by such a text, which is not empty: "tokenizer", or the name of a file that a
/// family of tasks keeps beside those of the tokenizer.
std::string what_differs(const std::string& difference);

/// Refuses a run folder that has lost one of the files that a manifest or a report lists: a family
/// reads what it knows of its data from them, and would answer as if it were not so. Throws
/// Error(kBadData) with the name of the first one.
/// @param listed  by name, as store::Provenance::tokenizer has them; empty in early checkpoints
/// @param folder  where they must be
/// @param where   what lists them
void require_listed_files(const std::map<std::string, std::string>& listed,
                          const std::filesystem::path& folder, const std::string& where);
/// The same of a checkpoint, for the run folder in which it lies, if it lies in one.
void require_listed_files(const store::LoadedCheckpoint& checkpoint);

/// Weights mean something with their tokenizer only: another one with as many pieces loads, and
/// gives nonsense. Throws Error(kBadData) naming file, folder and both hashes when the checkpoint
/// was trained with others than `hashes`, and as require_listed_files() does.
/// @param folder  where the files lie, for the message
void require_same_tokenizer(const store::LoadedCheckpoint& checkpoint,
                            const std::map<std::string, std::string>& hashes,
                            const std::filesystem::path& folder);

}  // namespace stretto::runs
