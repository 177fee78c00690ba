import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentVault
import Testing

@Suite("Signing device: a PIN, and a crash at every moment")
struct PasswordCrashTests {
    private let pin = Secret("271828")
    private let new = Secret("839201")

    @Test(
        "An enrolment with a PIN ends well, or says that it has to begin again and leaves nothing",
        arguments: [false, true])
    func enrolment(after: Bool) async throws {
        var (moment, lost) = (0, 0)
        while true {
            let scene = try Scene()
            try await scene.server.offer(ScriptedServer.PasswordOffer(.assisted))
            let fault = Fault(at: moment, after: after)
            let invite = try await scene.invite()
            let pin = pin
            _ = try? await scene.device(fault).enrol(invite) { _ in pin }
            let device = scene.device()
            do {
                let enrolment = try await device.enrol(invite) { _ in pin }
                #expect(try await scene.server.type(enrolment.digits))
                let container = try await device.container(enrolment.containerID)
                try await container.status()
                try await container.password(.signing)?.verify(pin)
                #expect(await scene.server.enrolments.count == 1, "moment \(moment)")
                #expect(await scene.keys.keyNames().count == 3, "moment \(moment)")
            } catch let error as SigningError where error.code == .enrolmentVoid {
                lost += 1
                for unfinished in try await device.unfinishedEnrolments() {
                    try await device.abandonEnrolment(unfinished.id)
                }
                #expect(await scene.isEmpty, "moment \(moment)")
                #expect(await scene.server.enrolments.isEmpty, "moment \(moment)")
            }
            #expect(await scene.server.commitments.count <= 1, "moment \(moment)")
            guard fault.hasHappened else { break }
            moment += 1
        }
        #expect(moment > 12)
        // From the stored keys to the stored proofs: before and after three writes and the call between them.
        #expect((1...4).contains(lost))
    }

    @Test("An approval with a PIN happens once, and crashes do not lock the user out", arguments: [false, true])
    func approvals(after: Bool) async throws {
        let scene = try Scene()
        let container = try await scene.enrolled(
            scene.device(), [.signing: "271828"],
            by: ScriptedServer.PasswordOffer(.assisted) {
                $0.lock["max"] = 2
                $0.lock["cap"] = 100
            })
        var moment = 0
        while true {
            let txn = await scene.server.ask()
            let fault = Fault(at: moment, after: after)
            func approve(_ device: SigningDevice) async throws {
                let container = try await device.container(container.id)
                try await device.sendQueued()
                for id in try await container.transactionIDs() {
                    let transaction = try await device.retrieveTransactionInfo(id).transaction()
                    try await transaction.setStatus("accept", password: pin, number: "42")
                }
            }
            try? await approve(scene.device(fault))
            try await approve(scene.device())
            let server = scene.server
            #expect(await server.transactions.last?.txn == txn)
            #expect(await server.transactions.allSatisfy { $0.effect == "approve" }, "moment \(moment)")
            #expect(await server.decisions.count == moment + 1, "moment \(moment)")
            #expect(await server.state == .active, "moment \(moment)")
            let slot = try #require(await server.signingSlot)
            #expect(slot.floor == slot.n, "moment \(moment)")
            // At most one evaluation of each crash is never confirmed.
            #expect(slot.unconfirmed <= moment, "moment \(moment)")
            guard fault.hasHappened else { break }
            moment += 1
        }
        #expect(moment > 8)
        #expect(await scene.store.names().count == 1)
    }

    @Test("A change of the PIN ends with one that counts, and loses no key", arguments: [false, true])
    func changes(after: Bool) async throws {
        var moment = 0
        while true {
            let scene = try Scene()
            let container = try await scene.enrolled(
                scene.device(), [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted))
            let fault = Fault(at: moment, after: after)
            try? await scene.device(fault).container(container.id).password(.signing)?.change(from: pin, to: new)
            let device = scene.device()
            let password = try #require(await device.container(container.id).password(.signing))
            do {
                try await password.verify(new)
            } catch let error as SigningError where error.code == .wrongPassword {
                // The user had not got as far as a new PIN.
                #expect(await scene.server.signingSlot?.generation == 0, "moment \(moment)")
                try await password.change(from: pin, to: new)
                try await password.verify(new)
            }
            await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(pin) }
            #expect(await scene.server.signingSlot?.generation == 1, "moment \(moment)")
            #expect(await scene.server.state == .active, "moment \(moment)")
            let transaction = try await scene.fetched(container, on: device)
            try await transaction.setStatus("accept", password: new, number: "42")
            guard fault.hasHappened else { break }
            moment += 1
        }
        #expect(moment > 10)
    }

    @Test("A local change is one write")
    func localChange() async throws {
        for (moment, after) in [(2, false), (2, true)] {
            let scene = try Scene()
            let container = try await scene.enrolled(
                scene.device(), [.signing: "271828"], by: ScriptedServer.PasswordOffer(.local))
            let fault = Fault(at: moment, after: after)
            let dying = try #require(await scene.device(fault).container(container.id).password(.signing))
            await #expect(throws: Fault.Crash.self) { try await dying.change(from: pin, to: new) }
            let password = try #require(await scene.device().container(container.id).password(.signing))
            try await password.verify(after ? new : pin)
            await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(after ? pin : new) }
        }
    }

    @Test("A change that somebody holds back until the device has given it up still opens the keys")
    func heldBack() async throws {
        let scene = try Scene()
        let device = scene.device()
        let container = try await scene.enrolled(
            device, [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted))
        let password = try #require(container.password(.signing))
        // The forged refusal, and the old generation in a signed status that was true then.
        await scene.server.refuse("/device/slots/change-commit", .init(status: 409, code: "wrong_generation"))
        await #expect(throws: SigningError(.wrongGeneration)) { try await password.change(from: pin, to: new) }
        try await password.verify(pin)
        // Now the request arrives.
        await scene.server.edit(.signing) { slot in
            (slot.key, slot.pending, slot.generation) = (slot.pending, nil, 1)
        }
        await #expect(throws: SigningError(.wrongGeneration)) { try await password.verify(pin) }
        try await password.verify(new)
    }

    // MARK: The ratchet

    @Test(
        "A store that was copied is found when the second of the two is used, whoever that is",
        arguments: [false, true])
    func forks(thiefFirst: Bool) async throws {
        let scene = try Scene()
        let container = try await scene.enrolled(
            scene.device(), [.signing: "271828"], by: ScriptedServer.PasswordOffer(.assisted))
        try await container.password(.signing)?.verify(pin)
        let copy = try await scene.copy()
        let order = thiefFirst ? [copy, scene] : [scene, copy]
        try await order[0].device().container(container.id).password(.signing)?.verify(pin)
        let second = try #require(await order[1].device().container(container.id).password(.signing))
        await #expect(throws: SigningError(.containerSuspect)) { try await second.verify(pin) }
        #expect(await scene.server.state == .suspect)
        #expect(await scene.server.signingSlot?.n == 2)
        #expect(try await order[1].device().container(container.id).state == .suspect)
    }

    @Test("No crash and no lost reply looks like a copied store")
    func soak() async throws {
        let scene = try Scene()
        let container = try await scene.enrolled(
            scene.device(), [.signing: "271828"],
            by: ScriptedServer.PasswordOffer(.assisted) {
                $0.lock["max"] = 10
                $0.lock["cap"] = 100
            })
        var seed: UInt64 = 42
        for _ in 0..<60 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let fault = Fault(at: Int(seed >> 33) % 7, after: seed >> 40 & 1 == 0)
            try? await scene.device(fault).container(container.id).password(.signing)?.verify(pin)
            if seed >> 41 & 3 == 0 {
                await scene.server.edit(.signing) { $0.unlockByUser() }
                try await scene.device().container(container.id).password(.signing)?.verify(pin)
            }
            #expect(await scene.server.state == .active)
        }
        await scene.server.edit(.signing) { $0.unlockByUser() }
        try await scene.device().container(container.id).password(.signing)?.verify(pin)
    }
}
