import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("A task says what becomes of its call, and can be stopped")
struct NetworkTaskTests {
    @Test("Row 26: the task's error and response are what the completion is told, and are set before it runs")
    func outcome() async throws {
        for status in [200, 404] {
            let world = ResourceWorld()
            world.behaviour.withLock { $0.resource = { _ in .json(status, ["a": 1]) } }
            let assent = try await world.assent()
            let known = Locked<NetworkTask?>(nil)
            let (gate, opens) = AsyncStream.makeStream(of: Void.self)
            world.behaviour.withLock { behaviour in
                behaviour.resource = { _ in
                    for await _ in gate { break }
                    return .json(status, ["a": 1])
                }
            }
            let seen = Locked<[(NetworkTask.State?, Int?, ResourceError?, ResourceError?)]>([])
            let task = try #require(
                assent.deviceClient.sendUnauthenticatedRequest(.get("status")) { response, error in
                    let task = known.withLock { $0 }
                    seen.withLock { $0.append((task?.state, task?.response?.status, task?.error, error)) }
                })
            known.withLock { $0 = task }
            #expect(task.state == .running && task.response == nil && task.error == nil)
            opens.yield()
            await task.ended()
            let told = seen.withLock { $0 }
            #expect(told.count == 1)
            #expect(told.first?.0 == .completed && told.first?.1 == status)
            #expect(told.first?.2 == told.first?.3)
            #expect(task.error?.number == (status == 200 ? nil : 10106))
        }
    }

    @Test("Row 20: each task has an identifier of its own, and the request that it was made of")
    func identity() async throws {
        let assent = try await ResourceWorld().assent()
        let tasks = try (0..<3).map { number in
            try #require(assent.deviceClient.sendUnauthenticatedRequest(.get("\(number)")) { _, _ in })
        }
        #expect(Set(tasks.map(\.identifier)).count == 3)
        #expect(tasks.map(\.request.path) == ["0", "1", "2"])
        for task in tasks { await task.ended() }
    }

    @Test("A suspended task of a user whose connection has ended does not start over as who has signed in meanwhile")
    func anotherUser() async throws {
        let (gate, ends) = AsyncStream.makeStream(of: Void.self)
        let world = ResourceWorld()
        world.behaviour.withLock { behaviour in
            behaviour.resource = { _ in
                let first = Locked<[UInt8]?>(Array("hello".utf8))
                let body = HTTPBody(length: 10, isReplayable: false) {
                    return {
                        if let chunk = first.withLock({ $0.take() }) { return chunk }
                        for await _ in gate { break }
                        throw HTTPTransportError(.connectionClosed, "The connection has ended.")
                    }
                }
                return HTTPReply(HTTPResponse(status: .ok), body: body)
            }
        }
        let assent = try await world.assent(signedIn: true)
        let told = Told()
        let task = try #require(
            assent.userClient.sendAuthenticatedRequest(.get("accounts"), completion: told.completion))
        await task.received(5)
        task.suspend()
        try await assent.tokens.install(Session(token: Secret("BOB")))
        ends.finish()
        task.resume()
        await task.ended()
        #expect(told.error?.number == 9006 && told.error?.domain == .generic)
        #expect(world.calls.count == 1)
    }

    @Test("Row 42: a cancelled task completes once with 9006, and what comes later is not told")
    func cancelled() async throws {
        let (gate, opens) = AsyncStream.makeStream(of: Void.self)
        let world = ResourceWorld()
        world.behaviour.withLock { behaviour in
            // This transport does not look at cancellations, so that the reply comes all the same.
            behaviour.resource = { _ in
                await Task.detached { for await _ in gate { break } }.value
                return .json(200, [:])
            }
        }
        let assent = try await world.assent()
        let told = Told()
        let task = try #require(
            assent.deviceClient.sendUnauthenticatedRequest(.get("status"), completion: told.completion))
        task.cancel()
        task.cancel()
        #expect(task.state == .cancelled && task.error?.number == 9006)
        await task.ended()
        opens.yield()
        task.resume()
        task.suspend()
        #expect(task.state == .cancelled && task.response == nil)
        #expect(told.count == 1 && told.error?.number == 9006 && told.response == nil)
    }

    @Test("Row 42: a task that is cancelled while the user is asked ends the question, and sends nothing again")
    func cancelledWhileAsked() async throws {
        let world = ResourceWorld()
        let advice = try Advice(transactionID: "tx-1").challengeFieldValue(server: am, realm: "/alpha")
        let name: JSONValue = [
            "type": "NameCallback", "output": [["name": "prompt", "value": "Name"]],
            "input": [["name": "IDToken1", "value": ""]],
        ]
        world.behaviour.withLock { behaviour in
            behaviour.resource = { exchange in
                guard exchange.request.url?.hasPrefix(am) == true else {
                    return HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: advice]))
                }
                return .json(200, ["authId": "A", "callbacks": [name]])
            }
        }
        let clock = ManualClock()
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let policy = try AuthorizationPolicy("\(api)/") { _ in
            ask.yield()
            defer { end.yield() }
            // Until the task is cancelled.
            try await clock.sleep(until: .distantFuture)
            return .next
        }
        let assent = try await world.assent(signedIn: true) { $0.policies = [policy] }
        let told = Told()
        let request = ResourceRequest(path: "transfers", method: .post, parameters: ["to": "Bob"])
        let task = try #require(
            assent.userClient.sendAuthenticatedRequest(request, completion: told.completion))
        for await _ in asked { break }
        task.cancel()
        await task.ended()
        for await _ in ended { break }
        #expect(told.count == 1 && told.error?.number == 9006 && task.error == told.error)
        #expect(task.state == .cancelled && told.response == nil)
        #expect(world.calls.count == 1)
        #expect(world.sent.filter { $0.request.url?.contains("/authenticate") == true }.count == 1)
    }

    @Test("Row 21: a reply that comes to a suspended task is told when it goes on, and not before")
    func suspended() async throws {
        let (gate, opens) = AsyncStream.makeStream(of: Void.self)
        let world = ResourceWorld()
        world.behaviour.withLock { behaviour in
            behaviour.resource = { _ in
                for await _ in gate { break }
                return .json(200, [:])
            }
        }
        let assent = try await world.assent()
        let told = Told()
        let task = try #require(
            assent.deviceClient.sendUnauthenticatedRequest(.get("status"), completion: told.completion))
        task.suspend()
        #expect(task.state == .suspended)
        opens.yield()
        for _ in 0..<100 { await Task.yield() }
        #expect(told.count == 0 && task.response == nil && task.state == .suspended)
        task.resume()
        await task.ended()
        #expect(told.count == 1 && told.response?.status == 200 && task.state == .completed)
        task.cancel()
        #expect(task.state == .completed && task.error == nil)
    }

    @Test("Row 21: a suspended task can be cancelled")
    func cancelledWhileSuspended() async throws {
        let world = ResourceWorld()
        let assent = try await world.assent()
        let told = Told()
        let task = try #require(
            assent.deviceClient.sendUnauthenticatedRequest(.get("status"), completion: told.completion))
        task.suspend()
        task.cancel()
        await task.ended()
        #expect(told.count == 1)
        #expect(told.error?.number == task.error?.number)
    }

    @Test("Row 21: progress adds up, and is told to whoever comes late")
    func progress() async throws {
        let world = ResourceWorld()
        world.behaviour.withLock { behaviour in
            behaviour.resource = { _ in
                HTTPReply(HTTPResponse(status: .ok), body: HTTPBody([UInt8](repeating: 1, count: 1000)))
            }
        }
        let assent = try await world.assent()
        let request = ResourceRequest(path: "a", method: .post, body: HTTPBody([UInt8](repeating: 2, count: 300)))
        let task = try #require(assent.deviceClient.sendUnauthenticatedRequest(request) { _, _ in })
        await task.ended()
        var last: NetworkProgress?
        for await now in task.progress { last = now }
        #expect(last?.sentBytes == 300 && last?.bytesToSend == 300)
        #expect(last?.receivedBytes == 1000 && last?.bytesToReceive == 1000)
    }
}
