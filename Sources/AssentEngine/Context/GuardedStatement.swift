import AssentStore

/// A statement of a transaction of the database, with what it means that it did not find its rows. So nobody counts at
/// which place a statement stands.
struct GuardedStatement<Refusal: Sendable>: Sendable {
    /// What is run.
    let statement: SQLStatement

    /// Why the transaction did not take place if this statement found other rows than it expects; `nil` for a statement
    /// that takes any, and for one whose failure is a fault of the program.
    let refusal: Refusal?

    /// A statement, with the refusal if it does not find what it expects.
    init(_ statement: SQLStatement, else refusal: Refusal?) {
        self.statement = statement
        self.refusal = refusal
    }

    /// A statement that must change or return one row.
    static func one(_ sql: SQL, else refusal: Refusal) -> Self {
        Self(SQLStatement(sql, expecting: .exactly(1)), else: refusal)
    }

    /// A statement that may change any number of rows.
    static func any(_ sql: SQL) -> Self { Self(SQLStatement(sql), else: nil) }

    /// A statement that cannot refuse, for example an audit record.
    static func also(_ statement: SQLStatement) -> Self { Self(statement, else: nil) }
}

/// What came of statements that must all find their rows.
enum Attempt<Refusal: Sendable>: Sendable {
    /// The rows of each statement.
    case done([[SQLRow]])
    /// Nothing was changed, for this reason.
    case refused(Refusal)
}

extension SQLDatabase {
    /// Runs statements as one transaction of the database.
    ///
    /// - Throws: `StoreError`, also when a statement without a refusal did not find what it expects.
    func attempt<Refusal>(_ statements: [GuardedStatement<Refusal>]) async throws -> Attempt<Refusal> {
        do {
            return .done(try await run(statements.map(\.statement)))
        } catch let error as StoreError where error.code == .unexpectedCount {
            guard let index = error.statement, statements.indices.contains(index),
                let refusal = statements[index].refusal
            else { throw error }
            return .refused(refusal)
        }
    }
}
