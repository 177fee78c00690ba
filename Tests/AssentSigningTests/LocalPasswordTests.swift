import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import Testing

@Suite("Signing device: local passwords")
struct LocalPasswordTests {
    private let scene: Scene
    private let pin = Secret("271828")
    private let wrong = Secret("271829")
    private let session = Secret("tr4in-spot")

    init() throws { scene = try Scene() }

    private func enrolled(
        _ device: SigningDevice, _ change: (inout ScriptedServer.PasswordOffer) -> Void = { _ in }
    ) async throws -> SigningContainer {
        try await scene.enrolled(
            device, [.signing: "271828", .session: "tr4in-spot"], by: ScriptedServer.PasswordOffer(.local, change),
            ScriptedServer.PasswordOffer(.local, slot: .session))
    }

    @Test("One password opens the details, another one signs, and neither costs a call")
    func both() async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        #expect(Set(container.passwords.map(\.slot)) == [.signing, .session])
        let txn = await scene.server.ask()
        let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
        #expect(info.protectionKey?.password == .session)
        await #expect(throws: SigningError(.passwordRequired)) { try await info.transaction() }
        await #expect(throws: SigningError(.wrongPassword)) { try await info.transaction(password: pin) }
        await #expect(throws: SigningError(.passwordRequired)) { try await container.transactionIDs() }
        #expect(try await container.transactionIDs(password: session).count == 1)
        let asked = await scene.server.asked.count
        let transaction = try await info.transaction(password: session)
        await #expect(throws: SigningError(.wrongPassword)) {
            try await transaction.setStatus("accept", password: session, number: "42")
        }
        #expect(await scene.server.decisions.isEmpty)
        let receipt = try await transaction.setStatus("accept", password: pin, number: "42")
        #expect(receipt.effect == .approve)
        #expect(await scene.server.asked.count == asked + 2)
        let second = await scene.server.ask()
        for try await next in container.transactions(password: session) {
            #expect(next.id == second.text)
            break
        }
    }

    @Test("An app that says how is asked once for what opens the details, and again when that was changed")
    func askedOnce() async throws {
        let asked = Locked(0)
        let right = Locked(session)
        var configuration = SigningDeviceConfiguration()
        configuration.sessionPassword = { request in
            #expect(request.slot == .session && !request.isNew)
            asked.withLock { $0 += 1 }
            return right.withLock { $0 }
        }
        let device = scene.device(configuration: configuration)
        let container = try await enrolled(device)
        let txn = await scene.server.ask()
        #expect(try await container.transactionIDs().count == 1)
        let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
        #expect(try await info.transaction().id == txn.text)
        #expect(asked.withLock { $0 } == 1)
        let next = Secret("br1dge-over")
        let other = try #require(await scene.device().container(container.id).password(.session))
        try await other.change(from: session, to: next)
        right.withLock { $0 = next }
        #expect(try await container.transactionIDs().count == 1)
        #expect(asked.withLock { $0 } == 2)
        right.withLock { $0 = wrong }
        await container.forgetPasswords()
        await #expect(throws: SigningError(.wrongPassword)) { try await container.transactionIDs() }
    }

    @Test("Of a password that the app is asked for nothing is kept: after a change elsewhere no old one is tried")
    func nothingKept() async throws {
        let typed = Locked(session)
        var configuration = SigningDeviceConfiguration()
        configuration.sessionPassword = { _ in typed.withLock { $0 } }
        let container = try await scene.enrolled(
            scene.device(configuration: configuration), [.signing: "271828", .session: "tr4in-spot"],
            by: ScriptedServer.PasswordOffer(.local),
            ScriptedServer.PasswordOffer(.local, slot: .session) { $0.lock = ["type": "counter", "max": 3] })
        for _ in 0..<20 { _ = try await container.transactionIDs() }
        let other = try #require(await scene.device().container(container.id).password(.session))
        try await other.change(from: session, to: Secret("br1dge-over"))
        typed.withLock { $0 = wrong }
        let error = await #expect(throws: SigningError.self) { try await container.transactionIDs() }
        #expect(error?.code == .wrongPassword && error?.remaining == 2)
    }

    @Test("One password for both is refused")
    func same() async throws {
        let error = await #expect(throws: SigningError.self) {
            _ = try await scene.enrolled(
                scene.device(), [.signing: "271828", .session: "271828"], by: ScriptedServer.PasswordOffer(.local),
                ScriptedServer.PasswordOffer(.local, slot: .session))
        }
        #expect(error?.code == .invalidPassword && error?.rule == .other)
    }

    @Test("The last wrong password destroys the keys, also over restarts, and the count is stored before the try")
    func counter() async throws {
        let container = try await enrolled(scene.device()) { $0.lock = ["type": "counter", "max": 3] }
        for left in [2, 1] {
            let password = try #require(await scene.device().container(container.id).password(.signing))
            let error = await #expect(throws: SigningError.self) { try await password.verify(wrong) }
            #expect(error?.code == .wrongPassword && error?.remaining == left)
        }
        // The right one takes it all back.
        let password = try #require(await scene.device().container(container.id).password(.signing))
        #expect(password.remaining == 1)
        try await password.verify(pin)
        #expect(try await scene.device().container(container.id).password(.signing)?.remaining == 3)
        // Whoever ends the process before the answer has used up a try.
        for _ in 1...2 {
            let fault = Fault(at: 1, after: false)
            let dying = try #require(await scene.device(fault).container(container.id).password(.signing))
            await #expect(throws: Fault.Crash.self) { try await dying.verify(pin) }
        }
        #expect(try await scene.device().container(container.id).password(.signing)?.remaining == 1)
        let error = await #expect(throws: SigningError.self) { try await password.verify(wrong) }
        #expect(error?.code == .credentialsLost && error?.passwordState == .shredded)
        #expect(try await scene.sealedBlobs(.signing).allSatisfy(\.isEmpty))
        await #expect(throws: SigningError(.credentialsLost)) { try await password.verify(pin) }
        #expect(try await scene.sealedBlobs(.session).allSatisfy { !$0.isEmpty })
    }

    @Test("What the key provider does not open is no try of the password: no count, and nothing destroyed")
    func providerRefuses() async throws {
        let container = try await enrolled(scene.device()) { $0.lock = ["type": "counter", "max": 3] }
        let password = try #require(container.password(.signing))
        await scene.keys.leaveUser(absent: true)
        for text in [pin, pin, wrong, pin] {
            await #expect(throws: KeyProviderError(.userAbsent, "")) { try await password.verify(text) }
        }
        #expect(try await scene.device().container(container.id).password(.signing)?.remaining == 3)
        await scene.keys.leaveUser(absent: false)
        try await password.verify(pin)
        let error = await #expect(throws: SigningError.self) { try await password.verify(wrong) }
        #expect(error?.code == .wrongPassword && error?.remaining == 2)
    }

    @Test("Without a lock no wrong password is counted, destroys anything or has to wait")
    func noLock() async throws {
        let container = try await enrolled(scene.device()) { $0.lock = ["type": "none"] }
        let password = try #require(container.password(.signing))
        #expect(password.lock == .local(.none) && password.remaining == nil)
        for _ in 1...12 {
            let error = await #expect(throws: SigningError.self) { try await password.verify(wrong) }
            #expect(error?.code == .wrongPassword && error?.remaining == nil && error?.retryAfter == nil)
        }
        try await password.verify(pin)
        let again = try #require(await scene.device().container(container.id).password(.signing))
        #expect(again.state == .open && again.remaining == nil)
    }

    @Test("The app sees what the policy says of wrong passwords, and which keys a password opens")
    func policies() async throws {
        let container = try await scene.enrolled(
            scene.device(), [.signing: "271828", .session: "tr4in-spot"],
            by: ScriptedServer.PasswordOffer(.local) { $0.lock = ["type": "delay", "delay": 10, "counter": 2] },
            ScriptedServer.PasswordOffer(.local, slot: .session))
        let signing = try #require(container.password(.signing))
        #expect(signing.mode == .local && signing.lock == .local(.delay(seconds: 10, counter: 2)))
        #expect(signing.keyLabels == ["payments", "sign-in"])
        #expect(container.password(.session)?.lock == .local(.counter(max: 5)))
        let other = try Scene()
        let assisted = try await other.enrolled(
            other.device(), [.signing: "271828"],
            by: ScriptedServer.PasswordOffer(.assisted) { $0.lock["delays"] = [0, 30] })
        let lock = AssistedPasswordLock(max: 5, cap: 20, delays: [0, 30])
        #expect(assisted.password(.signing)?.lock == .assisted(lock))
        #expect(assisted.keys(usage: .transport).first?.password == nil)
    }

    @Test("Each wrong password waits twice as long, by a clock that nobody can set, and a restart waits anew")
    func delays() async throws {
        let device = scene.device()
        let container = try await enrolled(device) { $0.lock = ["type": "delay", "delay": 10, "counter": 2] }
        let password = try #require(container.password(.signing))
        var waited: [Int?] = []
        for _ in 1...3 {
            let error = await #expect(throws: SigningError.self) { try await password.verify(wrong) }
            #expect(error?.code == .wrongPassword)
            waited.append(error?.retryAfter)
            let early = await #expect(throws: SigningError.self) { try await password.verify(pin) }
            #expect(early?.code == .passwordWait && early?.retryAfter == error?.retryAfter)
            scene.clock.advance(by: 1000)
            await #expect(throws: SigningError(.passwordWait)) { try await password.verify(pin) }
            scene.uptime.withLock { $0 += .seconds(error?.retryAfter ?? 0) }
        }
        #expect(waited == [10, 20, 20])
        scene.uptime.withLock { $0 = .zero }
        let restarted = try #require(await scene.device().container(container.id).password(.signing))
        let error = await #expect(throws: SigningError.self) { try await restarted.verify(pin) }
        #expect(error?.retryAfter == 20)
        scene.uptime.withLock { $0 = .seconds(20) }
        try await restarted.verify(pin)
    }

    @Test("Ages are judged by the server's time: too young to change, too old to use")
    func ages() async throws {
        let device = scene.device()
        let container = try await enrolled(device) {
            $0.rules["minAge"] = 1
            $0.rules["maxAge"] = 2
        }
        let password = try #require(container.password(.signing))
        await #expect(throws: SigningError(.passwordTooYoung)) {
            try await password.change(from: pin, to: Secret("839201"))
        }
        await scene.server.certify(900...900_000)
        await scene.server.set(time: 1000 + 2 * 86400 + 61)
        try await container.status()
        await #expect(throws: SigningError(.passwordExpired)) { try await password.verify(pin) }
        try await password.change(from: pin, to: Secret("839201"))
        try await password.verify(Secret("839201"))
    }

    @Test(
        "A changed password leaves no way back to the old one, and earlier ones are refused for as long as the rules say"
    )
    func history() async throws {
        let device = scene.device()
        let container = try await enrolled(device) { $0.rules["history"] = 2 }
        let password = try #require(container.password(.signing))
        func change(_ old: String, _ new: String) async throws {
            try await password.change(from: Secret(old), to: Secret(new))
        }
        for new in ["271828", "12", "1111", "2580"] {
            let error = await #expect(throws: SigningError.self) { try await change("271828", new) }
            #expect(error?.code == .invalidPassword && error?.rule != nil)
        }
        await #expect(throws: SigningError(.wrongPassword)) { try await change("271829", "839201") }
        try await change("271828", "839201")
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(pin) }
        try await change("839201", "574893")
        for old in ["271828", "839201", "574893"] {
            let error = await #expect(throws: SigningError.self) { try await change("574893", old) }
            #expect(error?.rule == .history)
        }
        try await change("574893", "660741")
        // Two changes ago is remembered, three are not.
        try await change("660741", "271828")
        try await password.verify(pin)
        #expect(try await device.container(container.id).keys.count == 4)
    }

    @Test("An enrolment goes on after a crash when the password is typed again")
    func resumed() async throws {
        try await scene.server.offer(
            ScriptedServer.PasswordOffer(.local), ScriptedServer.PasswordOffer(.local, slot: .session))
        await scene.server.refuse("/device/provision/commit", .init(status: 503, code: "unavailable"))
        let passwords: [PasswordSlot: Secret] = [.signing: pin, .session: session]
        let invite = try await scene.invite()
        await #expect(throws: SigningError(.unavailable)) {
            try await scene.device().enrol(invite) { passwords[$0.slot] ?? Secret("") }
        }
        let restarted = scene.device()
        await #expect(throws: SigningError(.wrongPassword)) {
            try await restarted.enrol(invite) { request in
                #expect(!request.isNew)
                return Secret("839201")
            }
        }
        let enrolment = try await restarted.enrol(invite) { passwords[$0.slot] ?? Secret("") }
        #expect(try await scene.server.type(enrolment.digits))
        #expect(await scene.server.commitments.count == 1)
    }
}
