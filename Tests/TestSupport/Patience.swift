/// How long a test waits for what comes in any case: an hour, which no machine needs, however slow it is.
///
/// Where something does not come, `Scripts/run_tests.sh` ends the run long before, and says which test waits for it.
package enum Patience {
    package static let seconds = 3600
}
