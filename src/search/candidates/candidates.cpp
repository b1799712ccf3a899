#include "search/candidates/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "forecast/hypotheses.h"
#include "forecast/prior.h"
#include "search/candidates/candidate_list.h"
#include "session/objectives.h"
#include "space/well_known.h"

namespace krigtune::search {

// How well a pipeline fills and how often collectives run depends on the micro-steps between two updates. Where these
// are derived from the batch, they depend on four parameters together, so log2 of gradient_accumulation_steps is a
// column of its own. Without a workload nothing is derived. If the names of the parameters allow it,
// log2(tensor_parallel * pipeline_parallel), the ranks that share one copy of the model, then represents the number of
// copies.

namespace {

constexpr std::int64_t kMostWalked = 10'000;
constexpr int kSamples = 2'000;
constexpr double kMiddle = 0.5;  // for a parameter that does not exist, as in the Encoder

bool is_derived(const space::Space& space, const std::string& name) {
  const std::vector<std::string> columns = space.columns();
  return std::find(columns.begin(), columns.end(), name) != columns.end() && space.find(name) == nullptr;
}

std::optional<double> log2_product(const std::vector<std::string>& names, const space::Configuration& configuration) {
  double sum = 0.0;
  for (const std::string& name : names) {
    const space::Value* value = configuration.find(name);
    if (value == nullptr || std::holds_alternative<std::string>(*value) || !(space::as_number(*value) > 0.0)) {
      return std::nullopt;
    }
    sum += std::log2(space::as_number(*value));
  }
  return sum;
}

void for_many(const space::Space& space, const std::function<void(const space::Configuration&)>& visit) {
  if (space.listable() && space.lattice_count() <= kMostWalked) {
    space.for_each([&](const space::Configuration& configuration) {
      visit(configuration);
      return true;
    });
    return;
  }
  if (space.is_empty()) return;
  Rng rng(0, 0);
  for (int i = 0; i < kSamples; ++i) visit(space.sample(rng));
}

}  // namespace

DerivedColumns::DerivedColumns(const space::Space& space) {
  std::vector<Product> wanted;
  if (is_derived(space, space::kAccumulation)) wanted.push_back({{space::kAccumulation}});
  const std::vector<std::string> splits = forecast::model_splits(space);
  if (!space.facts().well_known && splits.size() > 1) wanted.push_back({splits});
  if (wanted.empty()) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> ranges(wanted.size(), {kInfinity, -kInfinity});
  for_many(space, [&](const space::Configuration& configuration) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::optional<double> value = log2_product(wanted[i].names, configuration);
      if (!value) continue;
      ranges[i] = {std::min(ranges[i].first, *value), std::max(ranges[i].second, *value)};
    }
  });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [low, high] = ranges[i];
    if (high > low) products_.push_back({wanted[i].names, low, high - low});
  }
}

Eigen::MatrixXd DerivedColumns::encode(const std::vector<space::Configuration>& configurations) const {
  Eigen::MatrixXd columns(static_cast<Eigen::Index>(configurations.size()), size());
  for (Eigen::Index row = 0; row < columns.rows(); ++row) {
    for (Eigen::Index column = 0; column < columns.cols(); ++column) {
      const Product& product = products_[static_cast<std::size_t>(column)];
      const auto value = log2_product(product.names, configurations[static_cast<std::size_t>(row)]);
      columns(row, column) = value ? std::clamp((*value - product.low) / product.width, -1.0, 2.0) : kMiddle;
    }
  }
  return columns;
}

namespace {

// Acquisition is evaluated on every candidate, so a longer list would make a suggestion take seconds.
constexpr std::int64_t kMostListed = 100'000;
// Closed forms take about ten microseconds each. Where they do not decide, krigtune-bench's plan takes milliseconds, in
// all a minute or two at most.
constexpr std::int64_t kMostPredicted = 500'000;
constexpr std::int64_t kMostPlanned = 50'000;
// A step time takes about fifty microseconds, so all of them take a few seconds.
constexpr std::int64_t kMostTimed = 100'000;
constexpr int kDraws = 100'000;
constexpr int kPlannedDraws = 5'000;

std::int64_t most_listed(const session::MemoryFilter& filter, bool has_priors) {
  if (filter.is_exact()) return kMostPlanned;
  if (has_priors) return kMostTimed;
  return filter.knows_memory() ? kMostPredicted : kMostListed;
}

// Numbers are stored as their bytes, with 4 and 4.0 the same, because formatting them took half of the time that a pool
// needs. The first character gives the kind of what follows, so no two configurations share a key.
void append_to_key(const space::Value* value, std::string& key) {
  if (value == nullptr) {
    key += '-';
  } else if (space::is_number(*value)) {
    const double number = space::as_number(*value) + 0.0;  // makes -0 and 0 the same value
    const auto bytes = std::bit_cast<std::array<char, sizeof(double)>>(number);
    key += '#';
    key.append(bytes.data(), bytes.size());
  } else {
    key += '"' + space::to_string(*value) + '\n';
  }
}

bool can_be_listed(const space::Space& space, std::int64_t most) {
  if (!space.listable()) return false;
  if (space.lattice_count() <= most) return true;
  std::int64_t count = 0;
  space.for_each([&](const space::Configuration&) { return ++count <= most; });
  return count <= most;
}

// Where the job's physics is known, a parameter that has no part in it (a depth of prefetching, a number of workers)
// seldom matters as much as one that has: over its range it should change times by some per cent, and memory hardly. In
// a column as wide as the others, the same job with another value of it looks like a new one: the search tries the
// best, and what failed, once with each value. A width of a tenth is a lengthscale ten times as long. Values that
// differ more than that still shorten it.
constexpr double kWidthOfUnknown = 0.1;

Eigen::RowVectorXd widths_of(const std::vector<std::string>& names, const forecast::Hypotheses* hypotheses) {
  Eigen::RowVectorXd widths = Eigen::RowVectorXd::Ones(static_cast<Eigen::Index>(names.size()));
  if (hypotheses == nullptr || hypotheses->guess_roles()) return widths;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_known = space::find_well_known(space::well_known_name(names[i])) != nullptr;
    if (!is_known) widths(static_cast<Eigen::Index>(i)) = kWidthOfUnknown;
  }
  return widths;
}

}  // namespace

Candidates::Candidates(const session::Session& session, const session::MemoryFilter& filter,
                       const forecast::Priors& priors, Listing listing)
    : filter_(filter),
      priors_(priors),
      objectives_(session::all_objectives(session)),
      space_(session.space),
      encoder_(session.space),
      derived_(std::make_shared<const DerivedColumns>(session.space)),
      widths_(widths_of(encoder_.ordered_names(), hypotheses())),
      columns_(session.space.columns()) {
  if (listing == Listing::kNever || !can_be_listed(space_, most_listed(filter, !priors.empty()))) return;
  ListBuilder list(*this);
  space_.for_each([&](const space::Configuration& configuration) {
    ++space_count_;
    list.add(configuration);
    return true;
  });
  all_ = std::make_shared<const CandidateList>(list.finish());
  with_doubted_ = list_with_doubted();
}

std::shared_ptr<const CandidateList> Candidates::list_with_doubted() const {
  if (hypotheses() == nullptr || !hypotheses()->doubt_memory() || space_count_ == std::ssize(all_->configurations)) {
    return nullptr;
  }
  ListBuilder list(*this, [this](const space::Configuration& configuration) {
    return filter_.may_fit(configuration) || hypotheses()->may_fit(configuration);
  });
  space_.for_each([&](const space::Configuration& configuration) {
    list.add(configuration);
    return true;
  });
  if (list.size() == all_->size()) return nullptr;
  return std::make_shared<const CandidateList>(list.finish());
}

bool Candidates::empty() const {
  if (listed()) return size() == 0;
  Rng rng(0, 0);
  return space_.is_empty() || !draw(rng, [](const space::Configuration&) { return false; });
}

std::shared_ptr<const CandidateList> Candidates::to_score(const std::vector<journal::Trial>& history,
                                                          std::uint64_t seed) const {
  if (listed()) return all_;
  return std::make_shared<const CandidateList>(make_pool(*this, objectives_, history, seed));
}

std::shared_ptr<const CandidateList> Candidates::to_score_with_doubted(const std::vector<journal::Trial>& history,
                                                                       std::uint64_t seed) const {
  return with_doubted_ ? with_doubted_ : to_score(history, seed);
}

std::optional<space::Configuration> Candidates::draw(
    Rng& rng, const std::function<bool(const space::Configuration&)>& is_asked) const {
  const int draws = filter_.is_exact() ? kPlannedDraws : kDraws;
  for (int i = 0; i < draws; ++i) {
    space::Configuration configuration = space_.sample(rng);
    if (!is_asked(configuration) && filter_.may_fit(configuration)) return configuration;
  }
  return std::nullopt;
}

bool Candidates::contains(const space::Configuration& configuration) const {
  if (listed()) return all_->index.count(key(configuration)) > 0;
  return space_.contains(configuration) && filter_.may_fit(configuration);
}

std::optional<std::int64_t> Candidates::space_count() const {
  if (listed()) return space_count_;
  return space_.listable() ? std::optional(space_.count()) : std::nullopt;
}

std::optional<plan::MemoryVerdict> Candidates::memory_of(const space::Configuration& configuration) const {
  const std::optional<std::size_t> known = listed() ? longest().find(key(configuration)) : std::nullopt;
  return known ? longest().memory[*known] : filter_.check(configuration);
}

// Configurations in the list are not forecast again; otherwise a suggestion after a hundred trials would wait for
// hundreds of step times.
surrogate::Points Candidates::encode(const std::vector<space::Configuration>& configurations) const {
  if (!listed()) return encode_anew(configurations);
  std::vector<space::Configuration> others;
  std::vector<Eigen::Index> rows;
  const CandidateList& list = longest();
  const Eigen::Index listed_count = list.points.size();
  for (const space::Configuration& configuration : configurations) {
    const std::optional<std::size_t> known = list.find(key(configuration));
    rows.push_back(known ? static_cast<Eigen::Index>(*known) : listed_count + static_cast<Eigen::Index>(others.size()));
    if (!known) others.push_back(configuration);
  }
  const surrogate::Points anew = encode_anew(others);
  surrogate::Points points = surrogate::Points::zero(static_cast<Eigen::Index>(rows.size()), anew.ordered.cols(),
                                                     anew.categories.cols(), anew.features.cols());
  for (Eigen::Index i = 0; i < points.size(); ++i) {
    const Eigen::Index row = rows[static_cast<std::size_t>(i)];
    const surrogate::Points& from = row < listed_count ? list.points : anew;
    const Eigen::Index its = row < listed_count ? row : row - listed_count;
    points.ordered.row(i) = from.ordered.row(its);
    points.categories.row(i) = from.categories.row(its);
    points.features.row(i) = from.features.row(its);
  }
  return points;
}

surrogate::Points Candidates::encode_anew(const std::vector<space::Configuration>& configurations) const {
  const auto count = static_cast<Eigen::Index>(configurations.size());
  surrogate::Points points =
      surrogate::Points::zero(count, encoder_.ordered_dims() + derived_->size(), encoder_.category_dims(),
                              static_cast<Eigen::Index>(priors_.size()));
  points.ordered.rightCols(derived_->size()) = derived_->encode(configurations);
  for (Eigen::Index row = 0; row < count; ++row) {
    const space::EncodedPoint point = encoder_.encode(configurations[static_cast<std::size_t>(row)]);
    for (int column = 0; column < encoder_.ordered_dims(); ++column) {
      points.ordered(row, column) = 0.5 + widths_(column) * (point.ordered[static_cast<std::size_t>(column)] - 0.5);
    }
    for (int column = 0; column < encoder_.category_dims(); ++column) {
      points.categories(row, column) = point.categories[static_cast<std::size_t>(column)];
    }
  }
  for (std::size_t k = 0; k < priors_.size(); ++k) {
    if (priors_[k]->hypotheses() != nullptr) continue;
    points.features.col(static_cast<Eigen::Index>(k)) = priors_[k]->log_values(configurations);
  }
  return points;
}

// The key is built column by column, so it does not depend on the order of the names or on further names.
std::string Candidates::key(const space::Configuration& configuration) const {
  std::string key;
  key.reserve(columns_.size() * (1 + sizeof(double)));
  // Most configurations have the columns in this order, so a search by name is rarely needed.
  auto next = configuration.begin();
  for (const std::string& column : columns_) {
    const bool is_next = next != configuration.end() && next->first == column;
    append_to_key(is_next ? &next->second : configuration.find(column), key);
    if (is_next) ++next;
  }
  return key;
}

}  // namespace krigtune::search
