#pragma once
#include <string>
#include <vector>

#include "opinion/second_opinion.h"

namespace krigtune::accuracy {

/// A published run and how much faster than predicted it was.
struct Neighbour {
  opinion::Subject subject;
  std::string source;
  double log_reached = 0.0;  ///< log(predicted / published seconds)
};

/// What the nearest other run says of a run, by their distance.
struct Nearness {
  std::string others;  ///< who may be nearest: "of other sources", "of other models"
  double from = 0.0, to = 0.0;
  int runs = 0;
  double mean_error = 0.0;   ///< mean of |log_reached|
  double correlation = 0.0;  ///< Pearson's, of log_reached of the runs and of their nearest ones
};

/// Asks each run's nearest one of another source, and its nearest one with another number of parameters.
std::vector<Nearness> nearness(const std::vector<Neighbour>& runs);
std::string nearness_csv(const std::vector<Nearness>& rows);

}  // namespace krigtune::accuracy
