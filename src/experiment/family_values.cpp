#include "experiment/family_values.h"

#include <string>

#include "base/error.h"

namespace stretto::experiment {

void FamilyValues::refuse(const std::type_info& wanted) const {
  throw Error(ExitCode::kInternal,
              std::string("values of type ") + values_.type().name() + " came where " +
                  wanted.name() + " was asked for",
              "a FamilySpec and the engine of its family have to name the same struct");
}

}  // namespace stretto::experiment
