import AssentCore
import AssentJOSE
import AssentSigning
import AssentVault
import Testing

@Suite("Signing device: a crash at every moment")
struct CrashTests {
    /// Everything from the invite to the receipt. Called again after a restart, it goes on where it was.
    private func run(_ scene: Scene, _ device: SigningDevice, _ transactions: inout [SigningID]) async throws {
        let container: SigningContainer
        if let made = try await device.containers().first {
            container = made
            if let digits = made.digits, await !scene.server.hasTyped { #expect(try await scene.server.type(digits)) }
        } else {
            let enrolment: SigningEnrolment
            if let unfinished = try await device.unfinishedEnrolments().first {
                enrolment = try await device.resumeEnrolment(unfinished.id)
            } else {
                enrolment = try await device.enrol(scene.invite(), name: "Laptop")
            }
            #expect(try await scene.server.type(enrolment.digits))
            container = try await device.container(enrolment.containerID)
        }
        try await container.status()
        try await device.sendQueued()
        if transactions.isEmpty { transactions.append(await scene.server.ask()) }
        for id in try await container.transactionIDs() {
            try await device.retrieveTransactionInfo(id).transaction().setStatus("accept", number: "42")
        }
    }

    @Test("Enrolment and decision end well, once, wherever the process ends", arguments: [false, true])
    func moments(after: Bool) async throws {
        var moment = 0
        while true {
            let scene = try Scene()
            let fault = Fault(at: moment, after: after)
            var transactions: [SigningID] = []
            try? await run(scene, scene.device(fault), &transactions)
            try await run(scene, scene.device(), &transactions)
            let server = scene.server
            #expect(await server.state == .active, "moment \(moment)")
            #expect(await server.commitments.count == 1, "moment \(moment)")
            #expect(await server.enrolments.count == 1, "moment \(moment)")
            #expect(await server.transactions.map(\.effect) == ["approve"], "moment \(moment)")
            #expect(await server.decisions.count == 1, "moment \(moment)")
            #expect(try await scene.device().containers().count == 1, "moment \(moment)")
            #expect(try await scene.device().unfinishedEnrolments().isEmpty, "moment \(moment)")
            #expect(await scene.keys.keyNames().count == 3, "moment \(moment)")
            #expect(await scene.store.names().count == 1, "moment \(moment)")
            guard fault.hasHappened else { break }
            moment += 1
        }
        // Seven calls and a configuration, and the writes between them.
        #expect(moment > 15)
    }

    @Test("A deletion ends well wherever the process ends", arguments: [false, true])
    func deletions(after: Bool) async throws {
        var moment = 0
        while true {
            let scene = try Scene()
            let container = try await scene.enrolled(scene.device())
            let fault = Fault(at: moment, after: after)
            let faulty = scene.device(fault)
            _ = try? await faulty.container(container.id).delete()
            let restarted = scene.device()
            if let left = try await restarted.containers().first { try await left.delete() }
            try await restarted.sendQueued()
            #expect(await scene.server.state == .revoked, "moment \(moment)")
            #expect(await scene.keys.keyNames().isEmpty, "moment \(moment)")
            #expect(await scene.store.names().isEmpty, "moment \(moment)")
            guard fault.hasHappened else { break }
            moment += 1
        }
        #expect(moment > 3)
    }
}
