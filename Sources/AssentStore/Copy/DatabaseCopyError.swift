import AssentCore

/// Why a database was not copied. The source is as it was; errors are equal when their codes are.
package struct DatabaseCopyError: AssentError {
    /// What went wrong.
    package let code: Code

    /// What happened, in full sentences; never a stored value.
    package let detail: String

    /// What to do.
    package let suggestion: String?

    /// An error with its explanation and what to do.
    package init(_ code: Code, _ detail: String, _ suggestion: String? = nil) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion
    }

    /// A stable name of a kind of failure; more may be added.
    package struct Code: ErrorCode {
        /// The name.
        package let rawValue: String

        /// A code by its name.
        package init(rawValue: String) { self.rawValue = rawValue }

        /// There is nothing to copy, or no server has ever used it.
        package static let noSource = Code("noSource")
        /// Servers are connected to the source.
        package static let sourceInUse = Code("sourceInUse")
        /// The source is a copy itself, which was broken off.
        package static let sourceUnfinished = Code("sourceUnfinished")
        /// A database does not have the schema of this version.
        package static let schemaDiffers = Code("schemaDiffers")
        /// The target holds data that no copy has written.
        package static let targetNotEmpty = Code("targetNotEmpty")
        /// The target holds an unfinished copy of another database.
        package static let targetOfAnotherSource = Code("targetOfAnotherSource")
        /// Another copy to the same target has begun since.
        package static let takenOver = Code("takenOver")
        /// Source and target do not hold the same.
        package static let contentDiffers = Code("contentDiffers")
        /// A database failed in between.
        package static let brokenOff = Code("brokenOff")
    }

    static let emptyTarget =
        "Name an empty database: make a new one, or remove this one if nobody needs it. Then copy again."

    static let taken = DatabaseCopyError(
        .takenOver, "Another copy to the same target has begun since, and goes on alone.", "Wait until that has ended.")

    /// Runs `body`; a transaction that fails at the statement with this index has found that another attempt has taken
    /// the target over.
    static func explaining(takenAt index: Int, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as StoreError where error.code == .unexpectedCount && error.statement == index {
            throw taken
        } catch let error as StoreError where error.code == .constraint {
            throw DatabaseCopyError(
                .contentDiffers, "The target holds rows that this copy has not written (\(error.detail)).", emptyTarget)
        }
    }
}
