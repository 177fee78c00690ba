/// A table, with what is done about it when a backup of it is restored, and when its rows have expired.
package struct RegisteredTable: Sendable {
    /// Who deletes rows that nobody needs any more.
    package enum Cleaning: Sendable, Hashable {
        /// Housekeeping does.
        case purged
        /// The database does, together with the row of that table which they belong to.
        case follows(String)
        /// Nobody does, for this reason.
        case kept(String)
    }

    /// The table's name.
    package let name: String

    /// Who deletes old rows.
    package let cleaning: Cleaning

    /// What a restored backup must not bring back, and how that is prevented.
    package let fence: [FenceStep]

    /// Why other rows may come back, or what an operator does again after a restore. Empty when none may.
    package let remark: String

    /// Whether `assent database copy` copies it. What only describes the one database is not copied.
    package let isCopied: Bool

    init(
        _ name: String, _ cleaning: Cleaning, fence: [FenceStep] = [], remark: String = "", isCopied: Bool = true
    ) {
        self.name = name
        self.cleaning = cleaning
        self.fence = fence
        self.remark = remark
        self.isCopied = isCopied
    }
}

/// What ``RestoredDatabase/fence(keepingSessions:)`` ends.
package enum FencedKind: String, Sendable, Hashable, CaseIterable {
    case sessions
    case grants
    case consents
    case networks
    case tokenKeys
    case codes
    case refreshTokens
    case webLinks
    case transactions
    case lostOutcomes
    case journeySteps
    case oneTimePasswords
    case bootstrapTokens
    case registrationTokens
    case signingTransactions
    case signingApprovals
    case invites
    case enrolments
    case evaluations
    case slots
    case deviceCodes
    case nonces

    /// What it is called in a sentence, in the plural.
    package var text: String {
        switch self {
        case .sessions, .grants, .consents, .transactions, .invites: rawValue
        case .networks: "usual networks"
        case .tokenKeys: "keys for tokens"
        case .codes: "authorization codes"
        case .refreshTokens: "refresh tokens"
        case .webLinks: "links that sign browsers in"
        case .lostOutcomes: "requests with an unknown outcome"
        case .journeySteps: "steps of journeys"
        case .oneTimePasswords: "current one-time passwords"
        case .bootstrapTokens: "bootstrap tokens"
        case .registrationTokens: "initial access tokens for apps"
        case .signingTransactions: "open signing transactions"
        case .signingApprovals: "unused approvals of devices"
        case .enrolments: "unfinished enrolments and renewals"
        case .evaluations: "unused PIN entries"
        case .slots: "PINs (locked until their users sign in)"
        case .deviceCodes: "one-time code keys of devices"
        case .nonces: "nonces of devices"
        }
    }
}
