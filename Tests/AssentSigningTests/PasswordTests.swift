import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentVault
import HTTPTypes
import Testing

@Suite("Signing device: an assisted PIN")
struct AssistedPasswordTests {
    private typealias Offer = ScriptedServer.PasswordOffer

    private let scene: Scene
    private let pin = Secret("271828")
    private let wrong = Secret("271829")

    init() throws { scene = try Scene() }

    private func enrolled(
        _ device: SigningDevice, _ change: (inout ScriptedServer.PasswordOffer) -> Void = { _ in }
    ) async throws -> SigningContainer {
        try await scene.enrolled(device, [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted, change))
    }

    private func refused(
        _ code: SigningError.Code, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Any
    ) async -> SigningError? {
        do {
            _ = try await body()
            Issue.record("nothing was refused", sourceLocation: sourceLocation)
        } catch let error as SigningError {
            #expect(error.code == code, sourceLocation: sourceLocation)
            return error
        } catch {
            Issue.record(error, sourceLocation: sourceLocation)
        }
        return nil
    }

    @Test("Approving takes the PIN and one evaluation each time; refusing takes none")
    func approvals() async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        #expect(container.passwords.map(\.slot) == [.signing] && container.passwords[0].mode == .assisted)
        #expect(container.keys.first { $0.usage == .sign }?.password == .signing)
        #expect(container.keys.first { $0.usage == .transport }?.password == nil)
        // The server hears which keys are sealed.
        let made = await scene.server.enrolment?.keys.map(\.keystore.rawValue)
        #expect(made == ["software", "software", "software+software", "software+software"])
        for number in 1...2 {
            let transaction = try await scene.fetched(container, on: device)
            #expect(transaction.signingKey(for: "accept")?.password == .signing)
            #expect(transaction.signingKey(for: "deny")?.password == nil)
            _ = await refused(.passwordRequired) { try await transaction.setStatus("accept", number: "42") }
            let receipt = try await transaction.setStatus("accept", password: pin, number: "42")
            #expect(receipt.effect == .approve)
            #expect(await scene.server.signingSlot?.n == number)
            #expect(await scene.server.signingSlot?.unconfirmed == 0)
        }
        try await scene.fetched(container, on: device).setStatus("deny")
        #expect(await scene.server.signingSlot?.n == 2)
    }

    @Test("A wrong PIN says what is left, and signs nothing; the right one brings the tries back")
    func wrongPIN() async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        let transaction = try await scene.fetched(container, on: device)
        for left in [4, 3] {
            let error = await refused(.wrongPassword) {
                try await transaction.setStatus("accept", password: wrong, number: "42")
            }
            #expect(error?.remaining == left && error?.spare == left + 15 && error?.passwordState == .open)
            #expect(error?.code.hid == 100)
        }
        #expect(await scene.server.decisions.isEmpty)
        try await transaction.setStatus("accept", password: pin, number: "42")
        let slot = try #require(await scene.server.signingSlot)
        #expect(slot.n == 3 && slot.floor == 3 && slot.unconfirmed == 2)
        #expect(try await device.container(container.id).passwords[0].remaining == 5)
    }

    @Test("The server counts no try of a PIN with whose answer the key provider would open nothing")
    func providerRefuses() async throws {
        let container = try await enrolled(scene.device())
        let password = try #require(container.password(.signing))
        await scene.keys.leaveUser(absent: true)
        await #expect(throws: KeyProviderError(.userAbsent, "")) { try await password.verify(pin) }
        #expect(await scene.server.signingSlot?.n == 0)
        await scene.keys.leaveUser(absent: false)
        try await password.verify(pin)
        let slot = try #require(await scene.server.signingSlot)
        #expect(slot.n == 1 && slot.unconfirmed == 0)
    }

    @Test("After so many wrong PINs the slot is locked until the user authenticates, and the keys live on")
    func locked() async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        let password = try #require(container.password(.signing))
        for left in [4, 3, 2, 1, 0] {
            let error = await refused(.wrongPassword) { try await password.verify(wrong) }
            #expect(error?.remaining == left && error?.passwordState == (left == 0 ? .locked : .open))
            #expect(try await device.container(container.id).passwords[0].state == (left == 0 ? .locked : .open))
        }
        let error = await refused(.passwordLocked) { try await password.verify(pin) }
        #expect(error?.passwordState == .locked && error?.remaining == 0 && error?.spare == 15)
        #expect(try await device.container(container.id).passwords[0].state == .locked)
        await scene.server.edit(.signing) { $0.unlockByUser() }
        try await password.verify(pin)
        #expect(try await device.container(container.id).passwords[0].state == .open)
        #expect(await scene.server.signingSlot?.unconfirmed == 0)
    }

    @Test("At the cap the server destroys its key, and on its signed word the device destroys its own")
    func cap() async throws {
        let device = scene.device()
        let container = try await enrolled(device) {
            $0.lock["max"] = 3
            $0.lock["cap"] = 4
        }
        let password = try #require(container.password(.signing))
        for _ in 1...3 { _ = await refused(.wrongPassword) { try await password.verify(wrong) } }
        await scene.server.edit(.signing) { $0.unlockByUser() }
        let last = await refused(.wrongPassword) { try await password.verify(wrong) }
        #expect(last?.spare == 0)
        #expect(try await device.container(container.id).passwords[0].needsAuthentication)
        let error = await refused(.credentialsLost) { try await password.verify(pin) }
        #expect(error?.passwordState == .shredded)
        let blobs = try await scene.sealedBlobs(.signing)
        #expect(blobs.count == 2 && blobs.allSatisfy(\.isEmpty))
        // Without another call.
        let asked = await scene.server.asked.count
        _ = await refused(.credentialsLost) { try await password.verify(pin) }
        #expect(await scene.server.asked.count == asked)
        // Refusing still works.
        try await scene.fetched(container, on: device).setStatus("deny")
    }

    @Test("An error that nobody has signed locks and destroys nothing", arguments: ["shredded", "locked", "wait"])
    func forged(code: String) async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        let password = try #require(container.password(.signing))
        await scene.server.refuse("/device/slots/unlock", .init(status: 410, code: code))
        let error = await refused(.init(rawValue: code)) { try await password.verify(pin) }
        #expect(error?.passwordState == .open)
        #expect(try await scene.sealedBlobs(.signing).allSatisfy { !$0.isEmpty })
        try await password.verify(pin)
    }

    @Test("A delay is told in seconds")
    func delays() async throws {
        let device = scene.device()
        let container = try await enrolled(device) { $0.lock["delays"] = [0, 30, 60] }
        let password = try #require(container.password(.signing))
        _ = await refused(.wrongPassword) { try await password.verify(wrong) }
        let told = await refused(.wrongPassword) { try await password.verify(wrong) }
        #expect(told?.retryAfter == 30)
        let error = await refused(.passwordWait) { try await password.verify(pin) }
        #expect(error?.retryAfter == 30)
        await scene.server.set(time: 1030)
        try await password.verify(pin)
    }

    @Test("Evaluations by another key, of another element or for something else are refused, and the next one counts")
    func evaluations() async throws {
        let device = scene.device()
        let container = try await enrolled(device) {
            $0.lock["max"] = 10
            $0.lock["cap"] = 100
        }
        let password = try #require(container.password(.signing))
        let other = try ObliviousKey()
        let input = try ObliviousInput(pin)
        let foreign = try other.evaluate(input.element)
        let zeros = Base64URL.encode([UInt8](repeating: 0, count: 96))
        let edits: [ScriptedServer.Edit] = [
            { $0["pk"] = .string(Base64URL.encode(other.publicKey.bytes)) },
            { $0["evaluated"] = .string(Base64URL.encode(foreign.evaluated)) },
            { $0["proof"] = .string(Base64URL.encode(foreign.proof)) },
            { $0["proof"] = .string(zeros) },
            { $0["evaluated"] = .string(Base64URL.encode([UInt8](repeating: 0, count: 49))) },
            { $0["gen"] = 1 }, { $0["slot"] = "session" },
            { eval in
                eval["purpose"] = "change"
                for name in ["unl", "n", "tries", "spare", "wait"] { eval[name] = nil }
            },
        ]
        for edit in edits {
            await scene.server.edit("eval", edit)
            _ = await refused(.serverAuthentication) { try await password.verify(pin) }
        }
        await scene.server.edit("eval", nil)
        // A server that proves another key than the pinned one: any PIN would look wrong.
        let key = try #require(await scene.server.signingSlot?.key)
        await scene.server.edit(.signing) { $0.key = other }
        _ = await refused(.serverAuthentication) { try await password.verify(pin) }
        await scene.server.edit(.signing) { $0.key = key }
        try await password.verify(pin)
        #expect(await scene.server.state == .active)
    }

    @Test("A PIN is remembered for so many seconds and uses, and each approval still takes an evaluation")
    func remembered() async throws {
        var configuration = SigningDeviceConfiguration()
        configuration.rememberedUses = 2
        let device = scene.device(configuration: configuration)
        let container = try await enrolled(device) { $0.rules["cache"] = 60 }
        let password = try #require(container.password(.signing))
        #expect(await !password.isRemembered)
        func approve(_ pin: Secret?) async throws {
            try await scene.fetched(container, on: device).setStatus("accept", password: pin, number: "42")
        }
        try await approve(pin)
        #expect(await password.isRemembered)
        try await approve(nil)
        try await approve(nil)
        #expect(await scene.server.signingSlot?.n == 3)
        _ = await refused(.passwordRequired) { try await approve(nil) }
        try await approve(pin)
        scene.uptime.withLock { $0 += .seconds(60) }
        _ = await refused(.passwordRequired) { try await approve(nil) }
        try await approve(pin)
        await password.forget()
        _ = await refused(.passwordRequired) { try await approve(nil) }
        // Another process remembers nothing.
        try await approve(pin)
        let restarted = try await scene.device().container(container.id)
        #expect(await !restarted.passwords[0].isRemembered)
    }

    @Test("A decision whose evaluation is too old is signed again with a new one")
    func staleEvaluation() async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        let transaction = try await scene.fetched(container, on: device)
        await scene.server.refuse("/device/transactions/decide", .init(status: 503, code: "unavailable"))
        _ = await refused(.unavailable) { try await transaction.setStatus("accept", password: pin, number: "42") }
        await scene.server.set(time: 1301)
        _ = await refused(.passwordRequired) { try await transaction.setStatus("accept", number: "42") }
        let receipt = try await transaction.setStatus("accept", password: pin, number: "42")
        #expect(receipt.effect == .approve)
        #expect(await scene.server.signingSlot?.n == 2)
        #expect(await scene.store.names().count == 1)
    }

    /// Has something happen before the first decision is sent.
    private struct LateTransport: HTTPTransport {
        let base: any HTTPTransport
        let before: Locked<(@Sendable () async throws -> Void)?>

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            guard call.request.path?.hasSuffix("/device/transactions/decide") == true else {
                return try await base.send(call)
            }
            let first = before.withLock { before in
                defer { before = nil }
                return before
            }
            try await first?()
            return try await base.send(call)
        }
    }

    @Test("A decision that was signed again stays when the queue hears late that the one before it is refused")
    func lateRefusal() async throws {
        let device = scene.device()
        let container = try await enrolled(device)
        let transaction = try await scene.fetched(container, on: device)
        let path = "/device/transactions/decide"
        await scene.server.refuse(path, .init(status: 503, code: "unavailable"))
        _ = await refused(.unavailable) { try await transaction.setStatus("accept", password: pin, number: "42") }
        await scene.server.set(time: 1301)
        // While the queue sends the first one, the app has a second one signed. The server takes that, and its answer
        // is lost.
        let meanwhile: @Sendable () async throws -> Void = {
            await scene.server.replay(path, "lost")
            _ = await refused(.serverAuthentication) {
                try await transaction.setStatus("accept", password: pin, number: "42")
            }
            await scene.server.replay(path, nil)
        }
        let transport = LateTransport(base: scene.server.transport, before: Locked(meanwhile))
        let queue = SigningDevice(store: scene.store, keys: scene.keys, transport: transport, clock: scene.clock)
        await #expect(throws: SigningError(.alreadyDecided)) { try await queue.sendQueued() }
        let receipt = try await transaction.setStatus("accept", password: pin, number: "42")
        #expect(receipt.effect == .approve)
        #expect(await scene.server.decisions.count == 2)
        #expect(await scene.server.signingSlot?.n == 2)
        #expect(await scene.store.names().count == 1)
    }

    @Test("Several tasks and processes that unlock at once take turns, and none looks like a copied store")
    func parallel() async throws {
        let container = try await enrolled(scene.device())
        let devices = [scene.device(), scene.device(), scene.device()]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<9 {
                let device = devices[index % devices.count]
                group.addTask {
                    try await device.container(container.id).password(.signing)?.verify(Secret("271828"))
                }
            }
            try await group.waitForAll()
        }
        #expect(await scene.server.state == .active)
        #expect(await scene.server.signingSlot?.n == 9)
        #expect(await scene.server.signingSlot?.unconfirmed == 0)
    }

    // MARK: Enrolment

    @Test("Passwords that break a rule, modes that the app does not allow, and a missing prompt stop an enrolment")
    func enrolments() async throws {
        try await scene.server.offer(ScriptedServer.PasswordOffer(.assisted))
        let invite = try await scene.invite()
        var device = scene.device()
        _ = await refused(.passwordRequired) { try await device.enrol(invite) }
        for (text, rule) in [
            ("123", PasswordRule.minimumLength(4)), ("1111", .sequence), ("2580", .common), ("", .unusable),
        ] {
            let error = await refused(.invalidPassword) { try await device.enrol(invite) { _ in Secret(text) } }
            #expect(error?.rule == rule)
        }
        #expect(await scene.server.signingSlot?.enrolments == 0)
        let enrolment = try await device.enrol(invite) { request in
            #expect(request.isNew && request.slot == .signing && request.mode == .assisted)
            #expect(request.rules.minLength == 4 && request.issuerName == "Bank of Tests")
            return Secret("271828")
        }
        #expect(try await scene.server.type(enrolment.digits))
        for (modes, isFine) in [
            (Set<ProtectionMode>([.device, .local]), false), ([.assisted], true), ([.assisted, .device], true),
        ] {
            let other = try Scene()
            try await other.server.offer(ScriptedServer.PasswordOffer(.assisted))
            await other.server.expect(modes: modes)
            var configuration = SigningDeviceConfiguration()
            configuration.modes = modes
            device = other.device(configuration: configuration)
            if isFine {
                _ = try await device.enrol(other.invite()) { _ in Secret("271828") }
            } else {
                _ = await refused(.protectionPolicy) {
                    try await device.enrol(other.invite()) { _ in Secret("271828") }
                }
            }
        }
        let bare = try Scene()
        await bare.server.expect(modes: [.assisted])
        var configuration = SigningDeviceConfiguration()
        configuration.modes = [.assisted]
        _ = await refused(.protectionPolicy) {
            try await bare.device(configuration: configuration).enrol(bare.invite())
        }
    }

    @Test("A process that ends between its keys and the server's answer cannot go on, and says so")
    func lostKeys() async throws {
        try await scene.server.offer(ScriptedServer.PasswordOffer(.assisted))
        await scene.server.refuse("/device/provision/commit", .init(status: 503, code: "unavailable"))
        let invite = try await scene.invite()
        let device = scene.device()
        _ = await refused(.unavailable) { try await device.enrol(invite) { _ in Secret("271828") } }
        let restarted = scene.device()
        let unfinished = try #require(await restarted.unfinishedEnrolments().first)
        _ = await refused(.enrolmentVoid) {
            try await restarted.resumeEnrolment(unfinished.id) { _ in Secret("271828") }
        }
        #expect(await scene.server.commitments.isEmpty)
        // The process that has the keys can.
        let enrolment = try await device.enrol(invite) { _ in throw SigningError(.internal) }
        #expect(try await scene.server.type(enrolment.digits))
    }
}
