/// What an audit record tells of: the list of all events. The names are stable; more may be added.
package struct AuditEvent: Sendable, Hashable, RawRepresentable {
    /// The name, for example `transaction.take`.
    package let rawValue: String

    /// An event by its name.
    package init(rawValue: String) { self.rawValue = rawValue }

    private init(_ name: String) { rawValue = name }
}

extension AuditEvent {
    /// A transaction was asked for.
    package static let transactionCreate = AuditEvent("transaction.create")
    /// Its journey began.
    package static let transactionStart = AuditEvent("transaction.start")
    /// Its journey went on, and it could not be read.
    package static let transactionCheck = AuditEvent("transaction.check")
    /// The user has approved it.
    package static let transactionComplete = AuditEvent("transaction.complete")
    /// The user, or the journey, has declined it.
    package static let transactionDecline = AuditEvent("transaction.decline")
    /// It was used for its one access, or somebody tried to.
    package static let transactionTake = AuditEvent("transaction.take")
    /// What became of the request that it was used for.
    package static let transactionOutcome = AuditEvent("transaction.outcome")
}

extension AuditEvent {
    /// A journey has ended: somebody signed in, approved, or did not.
    package static let authenticate = AuditEvent("authenticate")
    /// A session was ended.
    package static let sessionEnd = AuditEvent("session.end")
    /// A password was wrong.
    package static let passwordVerify = AuditEvent("password.verify")
    /// A one-time password was compared.
    package static let otpVerify = AuditEvent("otp.verify")
}

extension AuditEvent {
    /// A code was issued, or refused.
    package static let oauthAuthorize = AuditEvent("oauth.authorize")
    /// A code was exchanged for tokens, or somebody tried to.
    package static let oauthCode = AuditEvent("oauth.code")
    /// A refresh token was used, or somebody tried to.
    package static let oauthRefresh = AuditEvent("oauth.refresh")
    /// A client got a token of its own.
    package static let oauthClient = AuditEvent("oauth.client")
    /// A user has agreed to what a client wants, or has taken that back.
    package static let oauthConsent = AuditEvent("oauth.consent")
    /// A token or a grant was revoked.
    package static let oauthRevoke = AuditEvent("oauth.revoke")
    /// An app has asked for a link that signs a browser in.
    package static let webLinkCreate = AuditEvent("weblink.create")
    /// A link has signed a browser in, or somebody tried to use it.
    package static let webLinkUse = AuditEvent("weblink.use")
}

extension AuditEvent {
    /// The first administrator was made with the bootstrap token.
    package static let adminBootstrap = AuditEvent("admin.bootstrap")
    /// A user's roles were set.
    package static let adminRoles = AuditEvent("admin.roles")
    /// A user was locked out or let in again.
    package static let adminActive = AuditEvent("admin.active")
    /// A user was made.
    package static let adminCreate = AuditEvent("admin.create")
    /// A user got a new password.
    package static let adminPassword = AuditEvent("admin.password")
    /// A user got a new second factor.
    package static let adminSecondFactor = AuditEvent("admin.secondFactor")
    /// Somebody has listed the users.
    package static let adminUsers = AuditEvent("admin.users")
    /// Somebody has listed a user's sessions. That one was ended is `session.end`.
    package static let adminSessions = AuditEvent("admin.sessions")
    /// Signing keys were made.
    package static let adminKeys = AuditEvent("admin.keys")
    /// Static keys of payload encryption were listed, made or withdrawn.
    package static let adminPayloadKeys = AuditEvent("admin.payloadKeys")
    /// Somebody has read the audit log.
    package static let auditRead = AuditEvent("audit.read")
}

extension AuditEvent {
    /// An initial access token for an app was made, or all of an app have ended.
    package static let registrationToken = AuditEvent("registration.token")
    /// An instance of an app has registered, or was refused.
    package static let registrationCreate = AuditEvent("registration.create")
    /// An instance has changed what it has registered.
    package static let registrationUpdate = AuditEvent("registration.update")
    /// An instance has ended, with its grants.
    package static let registrationEnd = AuditEvent("registration.end")
    /// Somebody has listed instances.
    package static let registrationList = AuditEvent("registration.list")
    /// An app has said what its probes have found: the client's own word.
    package static let integrityReport = AuditEvent("integrity.report")
}

extension AuditEvent {
    /// An invite for a signing device was made or voided.
    package static let signingInvite = AuditEvent("signing.invite")
    /// A device has enrolled, its digits were entered, or it became active.
    package static let signingEnrol = AuditEvent("signing.enrol")
    /// A signing device was blocked, let in again, or has ended.
    package static let signingContainer = AuditEvent("signing.container")
    /// A password slot of a device was evaluated, confirmed, locked, unlocked, destroyed or changed.
    package static let signingSlot = AuditEvent("signing.slot")
    /// A device has signed its user in, or was refused to.
    package static let signingLogin = AuditEvent("signing.login")
    /// A transaction to sign was made, or refused by a limit.
    package static let signingCreate = AuditEvent("signing.create")
    /// A document was delivered to a device.
    package static let signingFetch = AuditEvent("signing.fetch")
    /// A transaction to sign was decided, has failed, or a decision was refused.
    package static let signingDecide = AuditEvent("signing.decide")
    /// A signed approval has completed the transaction of a policy.
    package static let signingTake = AuditEvent("signing.take")
    /// Who asked for a transaction to sign took it back.
    package static let signingCancel = AuditEvent("signing.cancel")
    /// Somebody has read a bundle of evidence.
    package static let signingEvidence = AuditEvent("signing.evidence")
    /// A key of an issuer was made or withdrawn.
    package static let signingKeys = AuditEvent("signing.keys")
}

extension AuditEvent {
    /// What could be used again in a restored backup was ended.
    package static let databaseRestore = AuditEvent("database.restore")
    /// A server took over that lacks changes that were acknowledged, and is used.
    package static let databaseLoss = AuditEvent("database.loss")
}
