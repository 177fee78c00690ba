import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// What an issuer keeps, on a real database, with Ana's enrolment as far as a test wants it. Messages are texts that
/// only look like some: the statements do not read them.
final class SigningStoreFixture: SigningPart {
    let base: TransactionFixture
    let realm: SigningRealm
    let user: String

    static let issuer = SigningIssuer(
        name: "https://am.bank.example/am/signing/realms/root/realms/alpha", realm: "/alpha")

    init(
        _ location: DatabaseLocation? = nil, operated: OperatedDatabase? = nil
    ) async throws {
        base = try await TransactionFixture(location, operated: operated)
        realm =
            SigningProvider(
                base.context, settings: SigningSettings(issuer: Self.issuer, name: "Bank of Example")
            ).realm
        user = base.ana.user.id
    }

    /// The same data, seen by another node.
    func node(_ database: any SQLDatabase) throws -> SigningProvider {
        SigningProvider(try TransactionFixture.context(database, clock: base.clock), settings: settings)
    }

    func id() -> SigningID { SigningID(random: base.context.random) }

    func proof(_ did: SigningID) -> SpentProof { SpentProof(jti: id(), did: did) }

    func invited(_ code: String = "code") async throws -> SigningInviteRecord {
        let invite = SigningInviteRecord(pid: id(), userID: user, username: "ana", maker: .user, createdAt: now)
        try await invites.create(invite, codeHash: code + invite.pid.text)
        return invite
    }

    func enrolment(_ invite: SigningInviteRecord, device: KeyThumbprint? = nil, offer: String = "offer")
        -> SigningEnrolmentRecord
    {
        let did = id()
        return SigningEnrolmentRecord(
            did: did, pid: invite.pid, deviceKeyID: device ?? "device of \(did)", deviceJWK: "{}",
            requestHash: "request of \(did)", offer: offer,
            info: "{}", expiresAt: invite.expiresAt)
    }

    func started(_ invite: SigningInviteRecord) async throws -> SigningEnrolmentRecord {
        let enrolment = enrolment(invite)
        try #require(try await enrolments.start(enrolment, user: user, isAgain: false, at: now))
        return enrolment
    }

    func commit(_ enrolment: SigningEnrolmentRecord, _ commitment: SigningHash = "commitment") async throws
        -> SigningNonce
    {
        try await enrolments.commit(
            KeyEnrolment(enrolment, user: user, named: "ana"),
            CommitBody(commitment: commitment, offer: .offer(enrolment.offer)),
            nonce: SigningNonce(random: base.context.random), proof: proof(enrolment.did), at: now)
    }

    func container(_ enrolment: SigningEnrolmentRecord, expiresIn seconds: Int64 = 2000) -> SigningContainerRecord {
        SigningContainerRecord(
            did: enrolment.did, userID: user, username: "ana", pid: enrolment.pid, serial: id().text, name: "laptop",
            pushID: nil, commitMode: .digits, deviceKeyID: enrolment.deviceKeyID, deviceJWK: "{}", transportJWK: "{}",
            sealedEcho: [1], echoHash: "echo", sealedHandle: [2], offer: enrolment.offer, enrol: "enrol",
            transcript: "transcript", approvalsFrom: now, renewAt: now + 1000, expiresAt: now + seconds,
            voidAt: enrolment.expiresAt + SigningInviteRecord.completion, createdAt: now)
    }

    func keys(_ container: SigningContainerRecord) -> [SigningKeyRow] {
        [SigningKeyUsage.device, .transport, .sign].map { usage in
            SigningKeyRow(
                kid: usage == .device ? container.deviceKeyID : "\(usage.rawValue) of \(container.did)",
                usage: usage, label: usage.rawValue, policy: "device", slot: nil,
                keystore: .software, publicJWK: "{}")
        }
    }

    func complete(_ container: SigningContainerRecord, limit: Int = 5) async throws -> Bool {
        try await enrolments.complete(
            container, SentKeys(rows: keys(container), digits: "12345678"), limit: limit, proof: proof(container.did),
            at: now)
    }

    func activation(_ approvalsFrom: Int64? = nil) -> SigningActivation {
        let record = id().text
        return SigningActivation(record: record, hash: "hash of \(record)", approvalsFrom: approvalsFrom ?? now)
    }

    func completed() async throws -> SigningContainerRecord {
        let enrolment = try await started(try await invited())
        _ = try await commit(enrolment)
        let container = container(enrolment)
        try #require(try await complete(container))
        return container
    }

    func active() async throws -> SigningContainerRecord {
        let container = try await completed()
        _ = try await enrolments.confirm(container, echoHash: "echo", activation: activation(), at: now)
        try #require(
            try await invites.compare(digits: "12345678", pid: container.pid, at: now) == .right(did: container.did))
        try #require(try await enrolments.acceptDigits(container, activation: activation(), at: now))
        return try #require(try await devices.find(container.did))
    }

    func state(_ container: SigningContainerRecord) async throws -> ContainerState? {
        try await devices.find(container.did)?.state
    }

    func transaction(
        client: String = "shop", number: String? = nil, did: SigningID? = nil, own: Bool = false,
        idempotency: SigningTransactionRecord.Idempotency? = nil, policy: String? = nil
    ) -> SigningTransactionRecord {
        SigningTransactionRecord(
            txn: id(), clientID: client, userID: user, did: did, kind: .transaction, content: "{}", req: "req",
            request: "request", matchNumber: number, createdAt: now, expiresAt: now + 180, isOwnSession: own,
            policyTransaction: policy, idempotency: idempotency)
    }

    func pending(number: String? = nil, client: String? = nil) async throws -> SigningTransactionRecord {
        try await documents.create(
            transaction(client: client ?? id().text, number: number), limits: SigningLimits())
    }

    func decision(
        _ transaction: SigningTransactionRecord, _ container: SigningContainerRecord,
        _ state: SigningTransactionRecord.State = .approved, dh: SigningHash? = nil
    ) -> MadeDecision {
        MadeDecision(
            row: SigningDecision(
                txn: transaction.txn, did: container.did, dh: dh ?? "decision \(id())", decision: "decision",
                possession: nil, txd: "txd", receipt: "receipt \(id())"),
            effects: DecisionEffects(
                kid: state == .approved ? "sign of \(container.did)" : container.deviceKeyID, state: state,
                status: "accept", needsNumber: transaction.matchNumber != nil && state == .approved,
                auditID: base.context.random.uuid()))
    }

    /// A decision, with all that it changes.
    struct MadeDecision: Sendable {
        var row: SigningDecision
        var effects: DecisionEffects

        var txn: SigningID { row.txn }
        var dh: SigningHash { row.dh }
        var receipt: String { row.receipt }
    }

    func audited(_ event: AuditEvent, _ txn: SigningID) async throws -> [String] {
        try await base.audited(event, txn.text)
    }
}

/// The code of the error that `body` throws; `nil` when it throws none.
func signingCode(_ body: () async throws -> Void) async throws -> SigningErrorCode? {
    do {
        try await body()
        return nil
    } catch let error as SigningRefusal {
        return error.code
    }
}

extension SigningDecisions {
    func decide(
        _ made: SigningStoreFixture.MadeDecision, container: SigningContainerRecord, proof: SpentProof, at now: Int64
    ) async throws -> String {
        try await decide(made.row, made.effects, container: container, proof: proof, at: now)
    }
}

extension Keystore {
    static let software = Keystore(rawValue: "software")!
}

/// A value that a name stands for: it only looks like something that was signed or drawn.
extension FixedBytes: ExpressibleByStringInterpolation {
    package init(stringLiteral name: String) {
        self = FixedBytes(bytes: SigningHash(sha256: Array(name.utf8)).bytes.prefix(Size.byteCount))!
    }
}

extension SigningDocuments {
    /// How many open transactions a container could fetch; at most 1000.
    func pending(_ container: SigningContainerRecord, at now: Int64) async throws -> Int {
        try SigningTransactionSQL.count(try await store.all(SigningTransactionSQL.pending(for: container, at: now)))
    }
}
