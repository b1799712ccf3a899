#pragma once
#include <utility>

#include "forecast/warm_start.h"
#include "search/candidates/candidates.h"
#include "session/memory_filter.h"
#include "session/session.h"

namespace krigtune::run {

/// A session with what is worked out from it once, before anything is asked: what can fit into the memory, and all
/// configurations that may be asked, with what is believed of them beforehand.
///
///   const run::Prepared prepared(session::load_session("session.json"));
///   run::ask_by_hand(prepared.session, prepared.candidates, directory, options, clock, 1);
///
/// The candidates refer to the filter beside them, so it can be neither copied nor moved.
struct Prepared {
  session::Session session;
  session::MemoryFilter filter;
  search::Candidates candidates;

  /// `earlier`: runs that it is warm-started from.
  explicit Prepared(session::Session read, const forecast::EarlierRuns& earlier = {})
      : session(std::move(read)),
        filter(session),
        candidates(session, filter, forecast::make_priors(session, filter, earlier)) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
};

}  // namespace krigtune::run
