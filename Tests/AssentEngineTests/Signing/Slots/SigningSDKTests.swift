import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Logging
import SigningTesting
import Testing

@testable import AssentEngine

/// Carries the SDK's calls to an issuer in this process.
private struct IssuerTransport: HTTPTransport {
    let world: SigningWorld
    /// Which call from now on is lost, and whether the issuer has answered it before.
    let losing = Locked<(left: Int, after: Bool)>((.max, false))

    private static let lost = HTTPTransportError(.connectionClosed, "The connection is lost.")

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let isLost = losing.withLock { losing in
            losing.left -= 1
            return losing.left == -1 ? losing.after : nil
        }
        if isLost == false { throw Self.lost }
        let reply = try await answer(call)
        if isLost == true { throw Self.lost }
        return reply
    }

    private func answer(_ call: HTTPCall) async throws -> HTTPReply {
        let path = call.request.path ?? ""
        let nonce = try #require(HTTPField.Name("TSP-Nonce"))
        var fields: HTTPFields = [:]
        guard let range = path.range(of: "/device/") else {
            let (bytes, fresh) = try await world.configuration()
            fields[nonce] = fresh
            return HTTPReply(HTTPResponse(status: .ok, headerFields: fields), body: HTTPBody(bytes))
        }
        fields[nonce] = world.provider.door.nonce()
        let proof = HTTPField.Name("TSP-Proof").flatMap { call.request.headerFields[$0] }
        let body = try await call.body?.collect(upTo: 1 << 20) ?? []
        do {
            let answer = try await world.send(
                String(path[range.upperBound...]), proof: proof, body: String(decoding: body, as: UTF8.self))
            return HTTPReply(HTTPResponse(status: .ok, headerFields: fields), body: HTTPBody(answer))
        } catch let refusal as TestRefusal {
            let problem: JSONValue = ["code": .string(refusal.code)]
            return HTTPReply(
                HTTPResponse(status: .init(code: 403), headerFields: fields), body: HTTPBody(problem.serialized()))
        }
    }
}

/// Keys in memory.
private actor MemoryKeys: KeyProvider {
    nonisolated let kind = "software"
    nonisolated let protection = KeyProtection.software
    private var signing: [String: SoftwareSigningKey] = [:]
    private var agreement: [String: SoftwareAgreementKey] = [:]

    var availability: KeyAvailability { .available }

    func keyNames() -> [String] { Set(signing.keys).union(agreement.keys).sorted() }
    func signingKey(named name: String) -> (any SigningKey)? { signing[name] }
    func agreementKey(named name: String) -> (any KeyAgreementKey)? { agreement[name] }

    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) throws -> any SigningKey {
        let key = try SoftwareSigningKey.generate(algorithm)
        signing[name] = key
        return key
    }

    func makeAgreementKey(named name: String) -> any KeyAgreementKey {
        let key = SoftwareAgreementKey.generate()
        agreement[name] = key
        return key
    }

    func removeKey(named name: String) {
        signing[name] = nil
        agreement[name] = nil
    }
}

@Suite("The SDK's device and the engine: a PIN")
struct SigningSDKTests {
    private let pin = Secret("271828")
    private let new = Secret("839201")

    private func enrolled(
        _ world: SigningWorld, _ device: SigningDevice
    ) async throws -> SigningContainer {
        let invite = try await world.invite()
        let pin = pin
        let enrolment = try await device.enrol(
            SigningInvite(typed: invite.code.shown.reveal(), issuer: world.name), name: "Laptop"
        ) { _ in pin }
        let digits = try #require(enrolment.digits)
        let status = try await world.provider.invites.enter(digits: digits, world.ana, pid: invite.pid)
        try #require(status.state == "ACTIVE")
        try await device.container(enrolment.containerID).status()
        return try await device.container(enrolment.containerID)
    }

    /// A guess costs nothing, which the server cannot see.
    private func device(
        _ world: SigningWorld, store: MemorySecretStore = MemorySecretStore(), keys: MemoryKeys = MemoryKeys(),
        transport: IssuerTransport? = nil
    ) -> SigningDevice {
        SigningDevice(
            store: store, keys: keys, transport: transport ?? IssuerTransport(world: world),
            surroundings: SigningDevice.Surroundings(
                clock: ManualClock(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                uptime: { .zero },
                stretch: { password, salt, _ in Secret(bytes: SHA2.sha256(salt + password.secret.revealBytes())) }))
    }

    @Test("It enrols, approves, changes its PIN and goes on with the new one; the evidence holds")
    func story() async throws {
        let world = try await SigningWorld.withPIN()
        // As an app makes it: each guess costs what it does for a user.
        let device = SigningDevice(
            store: MemorySecretStore(), keys: MemoryKeys(), transport: IssuerTransport(world: world),
            clock: ManualClock())
        let container = try await enrolled(world, device)
        let password = try #require(container.password(.signing))
        func approve(_ pin: Secret) async throws -> SigningID {
            let (txn, _) = try await world.asked()
            let ids = try await container.transactionIDs()
            for id in ids {
                let transaction = try await device.retrieveTransactionInfo(id).transaction()
                let name = try #require(transaction.allowedStatuses.first { $0.effect == .approve }?.name)
                try await transaction.setStatus(name, password: pin)
            }
            return txn
        }
        let first = try await approve(pin)
        try await password.change(from: pin, to: new)
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(pin) }
        let second = try await approve(new)
        for txn in [first, second] {
            #expect(try await world.state(txn) == "APPROVED")
            let bytes = try await world.provider.evidence.bundle(txn.text, for: .caller(world.ana))
            let configuration = try await IssuerConfiguration(reading: world.configuration().bytes)
            let report = EvidenceVerification.report(
                on: try EvidenceBundle(reading: bytes), trust: configuration.identity.thumbprint)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
            #expect(report.attested.contains(.passwordCounted(txn: txn)))
        }
    }

    @Test("Where the server asks for a password of the transport key, nothing is read without it")
    func session() async throws {
        let cost = try #require(PasswordCost("$scrypt$ln=14,r=8,p=1"))
        let world = try await SigningWorld { settings in
            settings.policies = [
                ProtectionPolicy(
                    id: "reading", biometry: false,
                    password: ProtectionPolicy.Password(
                        mode: .local, cost: cost, rules: SigningWorld.rules(), lock: .local(.counter(max: 3))))
            ]
            settings.transportPolicy = "reading"
        }
        let sdk = try SDKWorld(world)
        let device = sdk.device()
        let container = try await sdk.enrolled(device, pin: pin)
        #expect(container.passwords.map(\.slot) == [.session])
        let (txn, _) = try await world.asked()
        await #expect(throws: SigningError(.passwordRequired)) { try await container.transactionIDs() }
        let ids = try await container.transactionIDs(password: pin)
        let info = try await device.retrieveTransactionInfo(try #require(ids.first))
        let error = await #expect(throws: SigningError.self) { try await info.transaction(password: new) }
        #expect(error?.code == .wrongPassword && error?.remaining == 2)
        let transaction = try await info.transaction(password: pin)
        #expect(transaction.displayed.title == "Confirm payment")
        // The keys that sign have no password here.
        #expect(try await transaction.setStatus("accept").effect == .approve)
        #expect(try await world.state(txn) == "APPROVED")
    }

    @Test("Wrong PINs are counted on both sides, and lock the slot")
    func locked() async throws {
        let world = try await SigningWorld.withPIN()
        let device = device(world)
        let container = try await enrolled(world, device)
        let password = try #require(container.password(.signing))
        for left in [4, 3, 2, 1, 0] {
            let error = await #expect(throws: SigningError.self) { try await password.verify(new) }
            #expect(error?.code == .wrongPassword && error?.remaining == left && error?.spare == left + 15)
        }
        let error = await #expect(throws: SigningError.self) { try await password.verify(pin) }
        #expect(error?.code == .passwordLocked && error?.passwordState == .locked)
        let status = try await container.status()
        #expect(status.passwords.map(\.state) == [.locked] && status.passwords.map(\.spare) == [15])
    }

    @Test("A copied store is taken for a delayed request at first, and found a minute later")
    func copied() async throws {
        let world = try await SigningWorld.withPIN()
        let (store, keys) = (MemorySecretStore(), MemoryKeys())
        let container = try await enrolled(world, device(world, store: store, keys: keys))
        let copy = MemorySecretStore()
        for name in await store.names() {
            guard let stored = try await store.value(name) else { continue }
            try await copy.update(name, to: stored.value, expected: .absent)
        }
        func password(_ store: MemorySecretStore) async throws -> SigningPassword {
            try #require(
                await device(world, store: store, keys: keys).container(container.id).password(.signing))
        }
        // Neither has unlocked before: whoever comes first sets the ratchet.
        try await password(copy).verify(pin)
        let error = await #expect(throws: SigningError.self) { try await password(store).verify(pin) }
        #expect(error?.code.rawValue == "use_nonce" && error?.isTransient == true)
        #expect(try await container.status().state == .active)
        world.base.clock.advance(by: 62)
        await #expect(throws: SigningError(.containerSuspect)) { try await password(store).verify(pin) }
        #expect(try await container.status().state == .suspect)
    }

    @Test("Lost requests and replies at any call neither look like a copied store nor lock the user out")
    func lost() async throws {
        let world = try await SigningWorld.withPIN()
        let (store, keys) = (MemorySecretStore(), MemoryKeys())
        let container = try await enrolled(world, device(world, store: store, keys: keys))
        for moment in 0..<40 {
            world.base.clock.advance(by: 40)
            let transport = IssuerTransport(world: world)
            let password = try #require(
                await device(world, store: store, keys: keys, transport: transport).container(container.id)
                    .password(.signing))
            transport.losing.withLock { $0 = (moment / 2 % 5, moment.isMultiple(of: 2)) }
            try? await password.verify(pin)
            transport.losing.withLock { $0 = (.max, false) }
            if moment.isMultiple(of: 3) { try await password.verify(pin) }
            #expect(try await container.status().state == .active, "moment \(moment)")
        }
        let slot = try #require(await container.status().passwords.first)
        // Each lost reply was asked for again with the same request, so no try was lost.
        #expect(slot.tries == 5 && slot.spare == 20)
    }

    @Test("Ages are the server's: too young to change, too old to approve until it is changed")
    func ages() async throws {
        let world = try await SigningWorld.withPIN {
            $0.minAge = 1
            $0.maxAge = 2
        }
        let device = device(world)
        let container = try await enrolled(world, device)
        let password = try #require(container.password(.signing))
        await #expect(throws: SigningError(.passwordTooYoung)) { try await password.change(from: pin, to: new) }
        world.base.clock.advance(by: 2 * 86400 + 60)
        _ = try await world.asked()
        let id = try #require(await container.transactionIDs().first)
        let transaction = try await device.retrieveTransactionInfo(id).transaction()
        let name = try #require(transaction.allowedStatuses.first { $0.effect == .approve }?.name)
        await #expect(throws: SigningError(.passwordExpired)) {
            try await transaction.setStatus(name, password: pin)
        }
        try await password.change(from: pin, to: new)
        let receipt = try await transaction.setStatus(name, password: new)
        #expect(receipt.effect == .approve)
    }
}
