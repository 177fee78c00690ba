import AssentCore
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

/// An issuer with Ana and her session, and devices that call it without HTTP.
final class SigningWorld: TestIssuer {
    /// Which node answers the next call of a task's devices; otherwise ``provider`` does.
    @TaskLocal static var route: (@Sendable () -> SigningProvider)?

    let base: TransactionFixture
    let provider: SigningProvider

    static let payment = SigningTemplate(
        title: LocalizedText("Confirm payment", byLanguage: ["de": "Zahlung freigeben"]),
        text: LocalizedText("Pay {amount} to {to}"),
        fields: [
            SigningTemplate.Field(
                id: "amount", label: LocalizedText("Amount"), type: .amount, pointer: "/0/instructedAmount"),
            SigningTemplate.Field(id: "to", label: LocalizedText("To"), type: .party, pointer: "/0/creditorName"),
        ], notShown: ["/0/type"])

    static let details = """
        [{"type":"payment","instructedAmount":{"amount":"200.00","currency":"EUR"},"creditorName":"Bob"}]
        """

    init(
        notifier: (any Notifier)? = nil, operated: OperatedDatabase? = nil,
        _ change: (inout SigningSettings) -> Void = { _ in }
    ) async throws {
        base = try await TransactionFixture(operated: operated)
        var numbered = Self.payment
        numbered.matchesNumber = true
        var settings = SigningSettings(
            issuer: SigningStoreFixture.issuer, name: "Bank of Example",
            templates: ["payment": Self.payment, "numbered": numbered])
        settings.limits.perMinute = 100
        change(&settings)
        #expect(settings.faults().isEmpty)
        provider = SigningProvider(base.context, settings: settings, notifier: notifier)
    }

    /// What a world has left whose database was closed.
    struct Left: Sendable {
        fileprivate let base: TransactionFixture.Left
        fileprivate let settings: SigningSettings
    }

    /// A world that begins with what another one has left.
    init(beginningWith left: Left) async throws {
        base = try await TransactionFixture(beginningWith: left.base)
        provider = SigningProvider(base.context, settings: left.settings)
    }

    /// Closes the database, as ``TransactionFixture/left()`` does.
    func left() async throws -> Left { Left(base: try await base.left(), settings: provider.settings) }

    var name: String { provider.settings.issuer.name }
    var ana: SigningCaller { SigningCaller(base.ana) }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        (try await provider.door.configuration(), provider.door.nonce())
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        guard let call = DeviceCall(rawValue: path) else { throw TestRefusal("no such call") }
        do {
            let node = Self.route?() ?? provider
            return try await node.door.answer(call, proof: proof, body: Array(body.utf8), address: "192.0.2.1")
        } catch {
            throw TestRefusal(error.code.rawValue)
        }
    }

    func invite(_ caller: SigningCaller? = nil, user: String? = nil) async throws -> (pid: String, code: InviteCode) {
        let invite = try await provider.invites.make(caller ?? ana, user: user)
        return (invite.pid, try #require(InviteCode(typed: invite.code.reveal())))
    }

    /// A device of Ana's that may approve.
    func enrolled() async throws -> (device: TestDevice, container: TestDevice.Enrolled) {
        let invite = try await invite()
        let device = try TestDevice(self)
        let container = try await device.enrol(invite.code)
        let status = try await provider.invites.enter(digits: container.digits, ana, pid: invite.pid)
        try #require(status.state == "ACTIVE")
        return (device, container)
    }

    func wish(_ template: String = "payment", details: String = SigningWorld.details) -> TransactionWish {
        TransactionWish(
            clientID: "shop", clientName: "Example Shop", user: "ana", template: template, details: details,
            idempotencyKey: base.context.random.uuid())
    }

    func asked(_ template: String = "payment") async throws -> (txn: SigningID, number: String?) {
        let made = try await provider.parties.create(wish(template))
        return (made.txn, made.matchNumber)
    }

    func state(_ txn: SigningID) async throws -> String {
        try await provider.parties.view(txn.text, client: "shop").state.rawValue
    }

    /// The audit records of an event, oldest first: the outcome, and a member of the detail.
    func audited(_ event: AuditEvent, _ member: String = "step") async throws -> [String] {
        try await AuditLog(base.context).newest(10_000).reversed().filter { $0.event == event }
            .map { "\($0.outcome.rawValue) \($0.detail[member]?.string ?? "-")" }
    }
}

extension SigningDevices {
    func find(_ did: String) async throws -> SigningContainerRecord? {
        try await find(try #require(SigningID(text: did)))
    }
}

extension SigningSlots {
    func find(_ slot: PasswordSlot, of did: String) async throws -> SigningSlotRow? {
        try await find(slot, of: try #require(SigningID(text: did)))
    }
}

extension SigningCodes {
    func keys(of did: String) async throws -> [SigningOneTimeSecret] {
        try await keys(of: try #require(SigningID(text: did)))
    }
}

/// The code that a call is refused with; `nil` when it is answered.
func refusal(_ body: () async throws -> Void) async throws -> String? {
    do {
        try await body()
        return nil
    } catch let error as TestRefusal {
        return error.code
    } catch let error as SigningRefusal {
        return error.code.rawValue
    }
}
