import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// What an issuer keeps, on a real database, with Ana's enrolment as far as a test wants it. Messages are texts that
/// only look like some: the statements do not read them.
final class SigningStoreFixture: Sendable {
    let base: TransactionFixture
    let store: SigningStore
    let user: String

    static let issuer = SigningIssuer(
        name: "https://am.bank.example/am/signing/realms/root/realms/alpha", realm: "/alpha")

    var now: Int64 { base.clock.epochSeconds }

    init(
        _ location: DatabaseLocation? = nil, operated: OperatedDatabase? = nil
    ) async throws {
        base = try await TransactionFixture(location, operated: operated)
        store = SigningStore(base.context, issuer: Self.issuer)
        user = base.ana.user.id
    }

    /// The same data, seen by another node.
    func node(_ database: any SQLDatabase) throws -> SigningStore {
        SigningStore(try TransactionFixture.context(database, clock: base.clock), issuer: Self.issuer)
    }

    func id() -> String { base.context.random.token(byteCount: 16) }

    func proof(_ did: String) -> SpentProof { SpentProof(jti: id(), did: did) }

    func invited(_ code: String = "code") async throws -> SigningInviteRecord {
        let invite = SigningInviteRecord(pid: id(), userID: user, username: "ana", maker: .user, createdAt: now)
        try await store.create(invite, codeHash: code + invite.pid)
        return invite
    }

    func enrolment(_ invite: SigningInviteRecord, device: String? = nil, offer: String = "offer")
        -> SigningEnrolmentRecord
    {
        SigningEnrolmentRecord(
            did: id(), pid: invite.pid, deviceKeyID: device ?? id(), deviceJWK: "{}", requestHash: id(), offer: offer,
            info: "{}", expiresAt: invite.expiresAt)
    }

    func started(_ invite: SigningInviteRecord) async throws -> SigningEnrolmentRecord {
        let enrolment = enrolment(invite)
        try #require(try await store.start(enrolment, user: user, isAgain: false, at: now))
        return enrolment
    }

    func commit(_ enrolment: SigningEnrolmentRecord, _ commitment: String = "commitment") async throws -> String {
        try await store.commit(
            enrolment, commitment: commitment, nonce: id(), user: user, proof: proof(enrolment.did), at: now)
    }

    func container(_ enrolment: SigningEnrolmentRecord, expiresIn seconds: Int64 = 2000) -> SigningContainerRecord {
        SigningContainerRecord(
            did: enrolment.did, userID: user, username: "ana", pid: enrolment.pid, serial: id(), name: "laptop",
            pushID: nil, commitMode: .digits, deviceKeyID: enrolment.deviceKeyID, deviceJWK: "{}", transportJWK: "{}",
            sealedEcho: [1], echoHash: "echo", sealedHandle: [2], offer: enrolment.offer, enrol: "enrol",
            transcript: "transcript", renewAt: now + 1000, expiresAt: now + seconds,
            voidAt: enrolment.expiresAt + SigningInviteRecord.completion, createdAt: now)
    }

    func keys(_ container: SigningContainerRecord) -> [SigningKeyRow] {
        ["device", "transport", "sign"].map { usage in
            SigningKeyRow(
                kid: usage == "device" ? container.deviceKeyID : "\(usage) of \(container.did)", usage: usage,
                label: usage, policy: "device", slot: nil, keystore: "software", publicJWK: "{}")
        }
    }

    func complete(_ container: SigningContainerRecord, limit: Int = 5) async throws -> Bool {
        try await store.complete(
            container, keys: keys(container), digits: "12345678", limit: limit, proof: proof(container.did), at: now)
    }

    func activation(_ approvalsFrom: Int64? = nil) -> SigningActivation {
        let record = id()
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
        _ = try await store.confirm(container, echoHash: "echo", activation: activation(), at: now)
        try #require(
            try await store.compare(digits: "12345678", pid: container.pid, at: now) == .right(did: container.did))
        try #require(try await store.acceptDigits(container, activation: activation(), at: now))
        return try #require(try await store.container(did: container.did))
    }

    func state(_ container: SigningContainerRecord) async throws -> ContainerState? {
        try await store.container(did: container.did)?.state
    }

    func transaction(
        client: String = "shop", number: String? = nil, did: String? = nil, own: Bool = false,
        idempotency: SigningTransactionRecord.Idempotency? = nil, policy: String? = nil
    ) -> SigningTransactionRecord {
        SigningTransactionRecord(
            txn: id(), clientID: client, userID: user, did: did, kind: "transaction", content: "{}", req: "req",
            request: "request", matchNumber: number, createdAt: now, expiresAt: now + 180, isOwnSession: own,
            policyTransaction: policy, idempotency: idempotency)
    }

    func pending(number: String? = nil, client: String? = nil) async throws -> SigningTransactionRecord {
        try await store.create(
            transaction(client: client ?? id(), number: number), limits: SigningLimits())
    }

    func decision(
        _ transaction: SigningTransactionRecord, _ container: SigningContainerRecord,
        _ state: SigningTransactionRecord.State = .approved, dh: String? = nil
    ) -> SigningDecision {
        SigningDecision(
            txn: transaction.txn, did: container.did,
            kid: state == .approved ? "sign of \(container.did)" : container.deviceKeyID, dh: dh ?? id(),
            state: state, status: "accept", needsNumber: transaction.matchNumber != nil && state == .approved,
            decision: "decision", possession: nil, txd: "txd", receipt: "receipt \(id())",
            auditID: base.context.random.uuid())
    }

    func audited(_ event: AuditEvent, _ txn: String) async throws -> [String] {
        try await base.audited(event, txn)
    }
}

/// The code of the error that `body` throws; `nil` when it throws none.
func signingCode(_ body: () async throws -> Void) async throws -> RefusalCode? {
    do {
        try await body()
        return nil
    } catch let error as SigningRefusal {
        return error.code
    }
}
