#include "runs/provenance.h"

#include <torch/version.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"
#include "runs/choose_checkpoint.h"
#include "store/manifest.h"
#include "text/tokenizer.h"

namespace stretto::runs {
namespace {

// The first file that is not the same on both sides; empty when all are. A tokenizer's that one
// side lacks is another tokenizer; of a file that a family keeps beside it, that side knows
// nothing.
std::string first_difference(const std::map<std::string, std::string>& a,
                             const std::map<std::string, std::string>& b) {
  for (const auto* side : {&a, &b}) {
    for (const auto& [name, hash] : *side) {
      const auto& other = side == &a ? b : a;
      const auto found = other.find(name);
      const bool same =
          found == other.end() ? !text::is_tokenizer_asset(name) : found->second == hash;
      if (!same) return name;
    }
  }
  return "";
}

std::string described(const std::map<std::string, std::string>& hashes, const std::string& name) {
  const auto found = hashes.find(name);
  return found == hashes.end() ? "no such file" : "SHA-256 " + printable(found->second);
}

}  // namespace

std::map<std::string, std::string> tokenizer_hashes(
    const std::map<std::string, std::string>& assets) {
  std::map<std::string, std::string> hashes;
  for (const auto& [name, bytes] : assets) hashes[name] = sha256_hex(bytes);
  return hashes;
}

store::Provenance provenance_of(const RunIdentity& identity) {
  return {.world_size = identity.world_size,
          .stretto = stretto::kVersion,
          .libtorch = TORCH_VERSION,
          .tokenizer = identity.tokenizer};
}

std::string tokenizer_difference(const std::map<std::string, std::string>& trained_with,
                                 const std::map<std::string, std::string>& hashes) {
  if (trained_with.empty() || hashes.empty()) return "";
  const std::string name = first_difference(trained_with, hashes);
  if (name.empty()) return "";
  return name + ": " + described(hashes, name) + ", trained with " + described(trained_with, name);
}

std::string tokenizer_difference(const store::LoadedCheckpoint& checkpoint,
                                 const std::map<std::string, std::string>& hashes) {
  return tokenizer_difference(checkpoint.provenance.tokenizer, hashes);
}

std::string what_differs(const std::string& difference) {
  const std::string file = difference.substr(0, difference.find(": "));
  return text::is_tokenizer_asset(file) ? "tokenizer" : file;
}

void require_listed_files(const std::map<std::string, std::string>& listed,
                          const std::filesystem::path& folder, const std::string& where) {
  for (const auto& [name, hash] : listed) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / name, ignored)) continue;
    throw Error(
        ExitCode::kBadData,
        (folder / printable(name)).string() + ": is missing, and " + where + " lists it",
        "put the file back from a copy of the run folder; its SHA-256 is " + printable(hash));
  }
}

void require_listed_files(const store::LoadedCheckpoint& checkpoint) {
  const auto run = run_of(checkpoint.directory);
  if (run.empty()) return;
  require_listed_files(checkpoint.provenance.tokenizer, run / "tokenizer",
                       (checkpoint.directory / store::kManifestName).string());
}

void require_same_tokenizer(const store::LoadedCheckpoint& checkpoint,
                            const std::map<std::string, std::string>& hashes,
                            const std::filesystem::path& folder) {
  const std::string difference = tokenizer_difference(checkpoint, hashes);
  if (difference.empty()) return require_listed_files(checkpoint);
  const std::string what = what_differs(difference);
  throw Error(ExitCode::kBadData,
              checkpoint.directory.string() + " belongs to another " + what +
                  " than there is: " + (folder / difference).string(),
              "put the " + what +
                  " of this run back, from a copy of the run folder; sha256sum shows whether it is "
                  "the right one");
}

}  // namespace stretto::runs
