import AssentCore
import AssentSigning
import AssentVault
import Testing

@Suite("Signing device: an offer that the server has replaced")
struct LateStartTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    private func count(_ path: String) async -> Int { await scene.server.asked.count { $0 == path } }

    @Test("The device asks for another offer, twice at most, and enrols with the same invite", arguments: [1, 2])
    func enrolment(late: Int) async throws {
        await scene.server.replaceOffers(late)
        let device = scene.device()
        let enrolment = try await device.enrol(scene.invite())
        #expect(try await scene.server.type(enrolment.digits))
        #expect(await count("/device/provision/start") == late + 1)
        #expect(await count("/device/provision/commit") == late + 1)
        #expect(await scene.server.commitments.count == 1)
        #expect(await scene.server.enrolments.count == 1)
        #expect(await scene.keys.keyNames().count == 3)
        #expect(try await device.unfinishedEnrolments().isEmpty)
    }

    @Test("Where it is replaced each time the app hears of it, and may go on with the same invite")
    func eachTime() async throws {
        await scene.server.replaceOffers(.max)
        let invite = try await scene.invite()
        let device = scene.device()
        let error = await #expect(throws: SigningError(.offerReplaced)) { try await device.enrol(invite) }
        #expect(error?.detail.contains("offer") == true && error?.suggestion?.contains("same invite") == true)
        #expect(await count("/device/provision/start") == 3)
        #expect(await scene.server.commitments.isEmpty)
        #expect(try await device.unfinishedEnrolments().count == 1)
        // Another offer may have other keys: nothing is left of those before.
        await scene.server.offer(keys: [
            ["usage": "device", "label": "device", "policy": "device"],
            ["usage": "transport", "label": "transport", "policy": "device"],
            ["usage": "sign", "label": "other", "policy": "device"],
        ])
        await scene.server.replaceOffers(1)
        let enrolment = try await scene.device().enrol(invite)
        #expect(try await scene.server.type(enrolment.digits))
        let names = await scene.keys.keyNames()
        #expect(names.count == 3 && !names.contains { $0.hasSuffix("payments") })
        #expect(names.contains { $0.hasSuffix("other") })
    }

    @Test("Any other refusal of the commitment, and this one of another call, makes no new keys")
    func otherRefusals() async throws {
        let invite = try await scene.invite()
        let refusal = ScriptedServer.Refusal(status: 409, code: "hash_mismatch")
        await scene.server.refuse("/device/provision/complete", refusal)
        await #expect(throws: SigningError(.init(rawValue: "hash_mismatch"))) { try await scene.device().enrol(invite) }
        for code in ["commitment_changed", "enrolment_void", "invalid_request"] {
            let other = try Scene()
            await other.server.refuse("/device/provision/commit", .init(status: 409, code: code))
            await #expect(throws: SigningError(.init(rawValue: code))) {
                try await other.device().enrol(other.invite())
            }
            #expect(await other.server.asked.count { $0 == "/device/provision/start" } == 1)
        }
        #expect(await count("/device/provision/start") == 1)
        let enrolment = try await scene.device().enrol(invite)
        #expect(try await scene.server.type(enrolment.digits))
        #expect(await scene.server.commitments.count == 1)
    }

    @Test("A password is asked for once more, and opens the keys that were made last")
    func password() async throws {
        try await scene.server.offer(ScriptedServer.PasswordOffer(.assisted))
        await scene.server.replaceOffers(1)
        let asked = Locked(0)
        let device = scene.device()
        let enrolment = try await device.enrol(scene.invite()) { _ in
            let number = asked.withLock { count in
                count += 1
                return count
            }
            return Secret(number == 1 ? "271828" : "839201")
        }
        #expect(asked.withLock { $0 } == 2)
        #expect(try await scene.server.type(enrolment.digits))
        let container = try await device.container(enrolment.containerID)
        try await container.status()
        try await container.password(.signing)?.verify(Secret("839201"))
        await #expect(throws: SigningError(.wrongPassword)) {
            try await container.password(.signing)?.verify(Secret("271828"))
        }
    }

    @Test("A renewal goes on with another offer, and removes the keys for the one before", arguments: [1, 2, 3])
    func renewal(late: Int) async throws {
        let container = try await scene.enrolled(scene.device())
        await scene.server.replaceOffers(late)
        if late == 3 {
            await #expect(throws: SigningError(.offerReplaced)) { try await container.renew() }
            #expect(await count("/device/renew/start") == 3)
        }
        #expect(try await container.renew().isDone)
        let renewed = try await container.renewed()
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        #expect(await scene.keys.keyNames().count == renewed.keys.count)
    }

    @Test("An enrolment whose offer is replaced ends well, wherever the process ends", arguments: [false, true])
    func crashes(after: Bool) async throws {
        for moment in 0..<80 {
            let scene = try Scene()
            await scene.server.replaceOffers(1)
            let fault = Fault(at: moment, after: after)
            let invite = try await scene.invite()
            _ = try? await scene.device(fault).enrol(invite)
            let enrolment = try await scene.device().enrol(invite)
            #expect(try await scene.server.type(enrolment.digits))
            #expect(await scene.server.commitments.count == 1, "moment \(moment)")
            #expect(await scene.server.enrolments.count == 1, "moment \(moment)")
            #expect(await scene.keys.keyNames().count == 3, "moment \(moment)")
            guard fault.hasHappened else { return #expect(moment > 15) }
        }
        Issue.record("The enrolment never ended without a crash.")
    }

    @Test("A renewal whose offer is replaced ends well, wherever the process ends", arguments: [false, true])
    func renewalCrashes(after: Bool) async throws {
        for moment in 0..<80 {
            let scene = try Scene()
            let container = try await scene.enrolled(scene.device())
            await scene.server.replaceOffers(1)
            let fault = Fault(at: moment, after: after)
            _ = try? await scene.device(fault).container(container.id).renew()
            let device = scene.device()
            #expect(try await device.container(container.id).renew().isDone)
            let renewed = try await device.container(container.id)
            #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)), "moment \(moment)")
            #expect(await scene.keys.keyNames().count == renewed.keys.count, "moment \(moment)")
            guard fault.hasHappened else { return #expect(moment > 10) }
        }
        Issue.record("The renewal never ended without a crash.")
    }
}
