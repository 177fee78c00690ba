import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Logging
import TestSupport
import Testing

@Suite("Signing device: against the second implementation's server", .enabled(if: PythonPeer.mustRun))
struct PythonServerTests {
    private let server: PythonServer
    private let store: MemorySecretStore
    private let keys = MemoryKeyProvider()
    private let clock = ManualClock()
    private let pin = Secret("271828")
    private let new = Secret("839201")

    init() throws {
        server = try PythonServer()
        store = MemorySecretStore(clock: clock)
    }

    /// A guess costs nothing, which the server cannot see.
    private func device(_ files: MemorySecretStore? = nil, _ others: MemoryKeyProvider? = nil) -> SigningDevice {
        SigningDevice(
            store: files ?? store, keys: others ?? keys, transport: server,
            surroundings: SigningDevice.Surroundings(
                clock: clock, logger: Logger(label: "test"),
                uptime: { .zero },
                stretch: { password, salt, _ in Secret(bytes: SHA2.sha256(salt + password.secret.revealBytes())) }))
    }

    private func enrolled(_ device: SigningDevice, _ mode: String) async throws -> SigningContainer {
        let invite = try await server.control("invite", ["mode": .string(mode)])
        let scanned = try SigningInvite(scanned: #require(invite["qr"]?.string))
        let pin = pin
        let enrolment = try await device.enrol(scanned, name: "Laptop") { _ in pin }
        let digits = try #require(enrolment.digits)
        let typed = try await server.control(
            "digits", ["pid": #require(invite["pid"]), "digits": .string(digits)])
        #expect(typed["state"] == "ACTIVE")
        let container = try await device.container(enrolment.containerID)
        #expect(try await container.status().state == .active)
        return try await device.container(enrolment.containerID)
    }

    private func approve(_ container: SigningContainer, on device: SigningDevice, _ pin: Secret?) async throws -> String
    {
        let created = try await server.control("create")
        let id = try #require(await container.transactionIDs().last)
        let transaction = try await device.retrieveTransactionInfo(id).transaction()
        #expect(transaction.id == created["txn"]?.string)
        try await transaction.setStatus("accept", password: pin)
        return transaction.id
    }

    @Test("It enrols, approves and judges evidence, in every mode", arguments: ["device", "local", "assisted"])
    func modes(mode: String) async throws {
        let device = device()
        let container = try await enrolled(device, mode)
        if mode != "device" {
            let error = await #expect(throws: SigningError.self) {
                _ = try await approve(container, on: device, Secret("271829"))
            }
            #expect(error?.code == .wrongPassword && error?.remaining == 4)
        }
        let txn = try await approve(container, on: device, mode == "device" ? nil : pin)
        let state = try await server.control("transaction", ["txn": .string(txn)])
        #expect(state["state"] == "APPROVED")
        let receipt = try UnverifiedMessage<Receipt>(#require(state["receipt"]?.string)).content
        #expect((receipt.unlock != nil) == (mode == "assisted"))
    }

    @Test("Locks, user's authentication, and a changed PIN")
    func life() async throws {
        let device = device()
        let container = try await enrolled(device, "assisted")
        let password = try #require(container.password(.signing))
        try await password.change(from: pin, to: new)
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(pin) }
        _ = try await approve(container, on: self.device(), new)
        for _ in 1...5 {
            let error = await #expect(throws: SigningError.self) { try await password.verify(pin) }
            #expect(error?.code == .wrongPassword)
            try await server.control("pass", ["seconds": .integer(error?.retryAfter ?? 0)])
        }
        let error = await #expect(throws: SigningError.self) { try await password.verify(new) }
        #expect(error?.code == .passwordLocked && error?.passwordState == .locked && error?.spare == 14)
        try await server.control("unlock", ["did": .string(container.id)])
        try await password.verify(new)
        #expect(try await device.container(container.id).passwords[0].spare == 20)
    }

    @Test(
        "A store from before a renewal, with or without its old keys, says that they are gone; the new ones live on",
        arguments: [true, false])
    func restored(withKeys: Bool) async throws {
        let container = try await enrolled(device(), "device")
        let old = MemorySecretStore(clock: clock)
        for name in await store.names() {
            guard let stored = try await store.value(name) else { continue }
            try await old.update(name, to: stored.value, expected: .absent)
        }
        let oldKeys = withKeys ? await keys.copy() : keys
        try await server.control("pass", ["seconds": .integer(340 * 86400)])
        #expect(try await container.renew().isDone)
        let late = self.device(old, oldKeys)
        let restored = try await late.container(container.id)
        for _ in 1...2 {
            await #expect(throws: SigningError(withKeys ? .keyRetired : .credentialsLost)) {
                try await restored.transactionIDs()
            }
        }
        #expect(try await late.containers().map(\.id) == [container.id])
        _ = try await approve(container.renewed(), on: self.device(), nil)
    }

    @Test(
        "New keys in every mode: when they are due behind the same PIN, after a reset behind another",
        arguments: ["device", "local", "assisted"])
    func renewals(mode: String) async throws {
        let device = device()
        let container = try await enrolled(device, mode)
        try await server.control("pass", ["seconds": .integer(340 * 86400)])
        let (pin, new, hasPIN) = (pin, new, mode != "device")
        #expect(try await container.renew { _ in pin }.isDone)
        _ = try await approve(container, on: self.device(), hasPIN ? pin : nil)
        let invite = try await server.control("invite", ["did": .string(container.id)])
        let scanned = try SigningInvite(scanned: #require(invite["qr"]?.string))
        let reset = try await container.renew(invite: scanned) { request in
            #expect(request.isNew)
            return new
        }
        let typed = try await server.control(
            "digits", ["pid": #require(invite["pid"]), "digits": .string(#require(reset.digits))])
        #expect(typed["state"] == "ACTIVE")
        let renewed = try await container.renewed()
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        if hasPIN {
            await #expect(throws: SigningError(.wrongPassword)) {
                _ = try await approve(renewed, on: self.device(), pin)
            }
        }
        _ = try await approve(renewed, on: self.device(), hasPIN ? new : nil)
    }
}
