#pragma once
#include <string>
#include <vector>

#include "krigtune/runner/replay.h"

namespace krigtune {

/// 12 significant digits: 0.07 * 1e6 is 70000.00000000001.
double rounded(double number);

/// One spelling for 4, 4.0 and "4", or for true, True and 1.
std::string spelling_of_field(const std::string& field);

/// Turns configurations and rows into keys: the values of the parameters, each in one spelling; a parameter that is
/// absent is an empty field. Where a column holds other units, values are compared in 12 digits.
class ReplayKeys {
 public:
  ReplayKeys(const ReplaySpec& spec, const std::vector<std::string>& parameters);
  std::string of(const Configuration& configuration) const;
  /// Of fields as the table has them; `fields` then holds what they mean in units of the space.
  std::string of(std::vector<std::string>& fields) const;

 private:
  struct Part {
    std::string parameter;
    double times;
  };
  std::vector<Part> parts_;
};

}  // namespace krigtune
