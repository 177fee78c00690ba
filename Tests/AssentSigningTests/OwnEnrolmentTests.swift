import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentVault
import Testing

@Suite("Signing device: enrolment with the app's own session")
struct OwnEnrolmentTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    private func enrol(
        _ device: SigningDevice, _ fault: Fault = .never, isOwner: Bool = true,
        password: SigningPasswordPrompt? = nil
    ) async throws -> SigningContainer {
        let session = FaultyTransport(base: scene.server.userTransport(isOwner: isOwner), fault: fault)
        return try await device.enrol(
            at: scene.server.issuer, with: session, name: "Laptop", pushID: nil, password: password)
    }

    private func count(_ call: String) async -> Int { await scene.server.asked.count { $0 == call } }

    @Test("One call makes the invite, enrols, and sends the digits: the container is active")
    func whole() async throws {
        let container = try await enrol(scene.device())
        #expect(container.state == .active && container.digits == nil && container.name == "Laptop")
        #expect(
            await scene.server.asked == [
                "POST /invites", "/configuration", "/device/provision/start", "/device/provision/commit",
                "/device/provision/complete", "/device/provision/confirm",
                "POST /invites/\(scene.server.pid.text)/digits", "/device/status",
            ])
    }

    @Test("A sign-in that is too old is the server's word, and nothing is made")
    func tooOld() async throws {
        await scene.server.refuse("/invites", .init(status: 403, code: "fresh_authentication_required"))
        await #expect(throws: SigningError(.freshAuthenticationRequired)) { try await enrol(scene.device()) }
        #expect(await scene.isEmpty)
    }

    @Test("Wrong digits end the invite, and the signed status removes what was made; they are sent once")
    func relayed() async throws {
        let place = "/invites/\(scene.server.pid.text)"
        await scene.server.refuse(place + "/digits", .init(status: 403, code: "digits_wrong"))
        await #expect(throws: SigningError(.digitsWrong)) { try await enrol(scene.device()) }
        #expect(await count("POST \(place)/digits") == 1)
        #expect(await count("DELETE \(place)") == 1)
        #expect(await scene.isEmpty)
    }

    @Test("A refusal that nobody has signed removes no container that the server says is active")
    func foreign() async throws {
        let place = "/invites/\(scene.server.pid.text)/digits"
        await scene.server.refuse(place, .init(status: 500, code: "busy"))
        await #expect(throws: SigningError.self) { try await enrol(scene.device()) }
        await scene.server.set(state: .active)
        // Another user is signed in by now; of the invite the server says that there is none.
        await scene.server.refuse("/invites", .init(status: 403, code: "fresh_authentication_required"))
        await #expect(throws: SigningError(.freshAuthenticationRequired)) {
            try await enrol(scene.device(), isOwner: false)
        }
        let containers = try await scene.device().containers()
        #expect(containers.map(\.state) == [.active])
    }

    @Test("What another user has left unconfirmed is removed, and a new invite is made")
    func leftByAnother() async throws {
        let place = "/invites/\(scene.server.pid.text)/digits"
        await scene.server.refuse(place, .init(status: 500, code: "busy"))
        await #expect(throws: SigningError.self) { try await enrol(scene.device()) }
        #expect(try await scene.device().containers().map(\.state) == [.unconfirmed])
        await scene.server.refuse("/invites", .init(status: 403, code: "fresh_authentication_required"))
        await #expect(throws: SigningError(.freshAuthenticationRequired)) {
            try await enrol(scene.device(), isOwner: false)
        }
        #expect(await scene.isEmpty)
    }

    @Test("An enrolment that the user has begun by a code is left alone")
    func scanned() async throws {
        let device = scene.device()
        let enrolment = try await device.enrol(scene.invite())
        await scene.server.refuse("/invites", .init(status: 403, code: "fresh_authentication_required"))
        await #expect(throws: SigningError(.freshAuthenticationRequired)) { try await enrol(device) }
        #expect(try await device.container(enrolment.containerID).digits == enrolment.digits)
    }

    @Test("Of a container by a code and an own one of a user the own one signs in; of two by a code neither does")
    func signsIn() async throws {
        func enrolByCode(_ issuer: String) async throws -> SigningContainer {
            let server = try ScriptedServer(issuer: issuer)
            let device = SigningDevice(
                store: scene.store, keys: scene.keys, transport: server.transport, clock: scene.clock)
            return try await device.container(
                device.enrol(SigningInvite(scanned: server.invite())).containerID)
        }
        let first = try await enrolByCode("https://am.example/other")
        #expect(try await scene.device().loginContainer(of: first.userID).id == first.id)
        _ = try await enrolByCode("https://am.example/third")
        let error = await #expect(throws: SigningError.self) {
            try await scene.device().loginContainer(of: first.userID)
        }
        #expect(error?.code == .inexplicitContainer)
        let own = try await enrol(scene.device())
        #expect(own.userID == first.userID && own.id != first.id)
        for user in [own.userID, own.userName] {
            #expect(try await scene.device().loginContainer(of: user).id == own.id)
            await #expect(throws: SigningError.self) { try await scene.device().container(of: user) }
        }
    }

    @Test("After an end at any write or call, on either side of it, the next call brings it to its end")
    func crashes() async throws {
        for isAfter in [false, true] {
            for moment in 0... {
                let scene = try Scene()
                let fault = Fault(at: moment, after: isAfter)
                let session = FaultyTransport(base: scene.server.userTransport(), fault: fault)
                let first = try? await scene.device(fault).enrol(
                    at: scene.server.issuer, with: session, name: nil, pushID: nil, password: nil)
                guard fault.hasHappened else {
                    #expect(first?.state == .active)
                    #expect(moment > 10)
                    break
                }
                if try await scene.device().containers().first?.state != .active {
                    _ = try await scene.device().enrol(
                        at: scene.server.issuer, with: scene.server.userTransport(), name: nil, pushID: nil,
                        password: nil)
                }
                #expect(try await scene.device().containers().map(\.state) == [.active], "\(moment), \(isAfter)")
                #expect(await scene.server.commitments.count == 1, "\(moment), \(isAfter)")
            }
        }
    }
}
