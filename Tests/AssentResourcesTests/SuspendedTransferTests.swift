import Assent
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("Suspended transfers over real connections")
struct SuspendedTransferTests {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"
    private static let named = head + "ETag: \"one\"\r\nAccept-Ranges: bytes\r\n\r\n"

    /// Starts a download of ten bytes that stops after five, suspends it, lets the server close the connection, and
    /// resumes it; then the server answers with `second`.
    private func interrupted(
        first: String = named, second: String, check: (TaskWorld, Told, NetworkTask) async throws -> Void
    ) async throws {
        try await TaskWorld.run { number, _, peer in
            peer.send(number == 0 ? first + "hello" : second)
        } _: { world in
            let told = Told()
            let task = try world.download(told)
            await task.received(5)
            task.suspend()
            world.server.seen.peers[0].close()
            #expect(told.count == 0)
            task.resume()
            await task.ended()
            #expect(told.count == 1)
            try await check(world, told, task)
            #expect(world.files.allSatisfy { $0 == "content" }, "something unfinished is left")
        }
    }

    private func content(_ world: TaskWorld) throws -> String {
        try String(contentsOfFile: world.target, encoding: .utf8)
    }

    private static func part(_ range: String, tag: String = "one") -> String {
        "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\nContent-Range: \(range)\r\nETag: \"\(tag)\"\r\n\r\nworld"
    }

    @Test("A download goes on by Range and If-Range where it was, and its file is its owner's alone")
    func continued() async throws {
        try await interrupted(second: Self.part("bytes 5-9/10")) { world, told, task in
            #expect(told.error == nil && told.response?.status == 200 && told.response?.file == world.target)
            let content = try content(world)
            #expect(content == "helloworld")
            let mode = try FileManager.default.attributesOfItem(atPath: world.target)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let second = world.server.seen.heads[1].lowercased()
            #expect(second.contains("range: bytes=5-") && second.contains("if-range: \"one\""))
            #expect(task.state == .completed)
        }
    }

    @Test("Content that has changed between the halves comes whole, and nothing of the first half stays")
    func changed() async throws {
        try await interrupted(second: "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nETag: \"two\"\r\n\r\nchange") {
            world, told, _ in
            #expect(told.error == nil)
            let content = try content(world)
            #expect(content == "change")
        }
    }

    @Test(
        "A part that does not belong to the first half is an error, and no file",
        arguments: [
            part("bytes 4-8/10"), part("bytes 5-9/11"), part("bytes 5-8/10"), part("bytes 5-9/*"),
            part("bytes 5-9/10", tag: "two"), part("items 5-9/10"),
        ])
    func foreign(second: String) async throws {
        try await interrupted(second: second) { world, told, _ in
            #expect(told.error?.number == -1011)
            #expect(world.files.isEmpty)
        }
    }

    @Test("A part of a content that is longer than what is accepted is refused at its header, whatever it has")
    func partOfTooMuch() async throws {
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\n\r\n5\r\n"
        try await interrupted(first: chunked, second: Self.part("bytes 5-\(Int.max - 1)/\(Int.max)")) {
            world, told, _ in
            #expect(told.error?.number == -1103)
            #expect(world.files.isEmpty)
        }
    }

    @Test(
        "Without a strong ETag and Accept-Ranges the connection is lost, and what is known is told",
        arguments: [
            head + "\r\n", head + "ETag: W/\"one\"\r\nAccept-Ranges: bytes\r\n\r\n",
            head + "ETag: \"one\"\r\n\r\n", head + "ETag: \"one\"\r\nAccept-Ranges: none\r\n\r\n",
        ])
    func notContinuable(first: String) async throws {
        try await interrupted(first: first, second: Self.part("bytes 5-9/10")) { world, told, task in
            #expect(told.error?.number == -1005 && task.error == told.error)
            #expect(told.response?.status == 200)
            #expect(world.server.seen.heads.count == 1)
            #expect(world.files.isEmpty)
        }
    }

    @Test("The rest is refused with a status: that is the reply, and there is no file")
    func refused() async throws {
        let second = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"
        try await interrupted(second: second) { world, told, _ in
            #expect(told.error?.number == 10106)
            #expect(told.response?.status == 404 && told.response?.data == Array("gone".utf8))
            #expect(world.files.isEmpty)
        }
    }

    @Test("A safe call whose reply the app has not seen starts over", arguments: [0, 5])
    func startsOver(sent: Int) async throws {
        try await TaskWorld.run { number, _, peer in
            peer.send(number == 0 ? (sent == 0 ? "" : Self.head + "\r\nhello") : Self.head + "\r\n0123456789")
        } _: { world in
            let told = Told()
            let task = try world.start(world.request(), told)
            await world.server.waitUntil { $0.heads.count == 1 }
            await task.received(sent)
            task.suspend()
            world.server.seen.peers[0].close()
            task.resume()
            await task.ended()
            #expect(told.error == nil && told.response?.data == Array("0123456789".utf8))
            #expect(world.server.seen.heads.count == 2)
        }
    }

    @Test("An unsafe call is never sent again, and what is known of its reply is told", arguments: [0, 5])
    func unsafe(sent: Int) async throws {
        try await TaskWorld.run { _, _, peer in
            if sent > 0 { peer.send(Self.head + "\r\nhello") }
        } _: { world in
            let told = Told()
            let task = try world.start(world.request(.post, body: HTTPBody("x")), told)
            await world.server.waitUntil { $0.contentBytes == 1 }
            await task.received(sent)
            task.suspend()
            world.server.seen.peers[0].close()
            task.resume()
            await task.ended()
            #expect(told.count == 1 && told.error?.number == -1005)
            #expect(told.response?.data == (sent == 0 ? nil : Array("hello".utf8)))
            #expect(world.server.seen.heads.count == 1)
        }
    }

    @Test("A connection that lives goes on, whatever the call", arguments: [HTTPRequest.Method.get, .post])
    func lives(method: HTTPRequest.Method) async throws {
        try await TaskWorld.run { _, _, peer in
            peer.send(Self.head + "\r\nhello")
        } _: { world in
            let told = Told()
            let task = try world.start(world.request(method), told)
            await task.received(5)
            task.suspend()
            world.server.seen.peers[0].send("world")
            for _ in 0..<100 { await Task.yield() }
            #expect(told.count == 0)
            task.resume()
            await task.ended()
            #expect(told.error == nil && told.response?.data == Array("helloworld".utf8))
            #expect(world.server.seen.heads.count == 1)
        }
    }

    @Test("Eight suspended downloads leave room for another call, and go on afterwards")
    func eight() async throws {
        try await TaskWorld.run { number, _, peer in
            peer.send(Self.head + (number < 8 ? "\r\nhello" : "\r\n0123456789"))
        } _: { world in
            let told = (0..<8).map { _ in Told() }
            let tasks = try told.map { try world.start(world.request(), $0) }
            for task in tasks { await task.received(5) }
            for task in tasks { task.suspend() }
            let other = try await world.client.sendUnauthenticatedRequest(world.request())
            #expect(other.data.count == 10)
            #expect(told.allSatisfy { $0.count == 0 })
            for peer in world.server.seen.peers.prefix(8) { peer.send("world") }
            for task in tasks {
                task.resume()
                await task.ended()
            }
            #expect(told.allSatisfy { $0.response?.data == Array("helloworld".utf8) })
        }
    }

    @Test("Eight suspended downloads leave room for a sign-in at the same server, and go on afterwards")
    func signIn() async throws {
        let session = #"{"tokenId":"SESS","successUrl":"/","realm":"/alpha"}"#
        let fields = "Content-Type: application/json\r\nContent-Length: \(session.utf8.count)\r\n"
        let signedIn = "HTTP/1.1 200 OK\r\n\(fields)\r\n\(session)"
        try await TaskWorld.run { _, head, peer in
            peer.send(head.hasPrefix("POST ") ? signedIn : Self.head + "\r\nhello")
        } _: { world in
            let told = (0..<8).map { _ in Told() }
            let tasks = try told.enumerated().map { number, told -> NetworkTask in
                let download = world.request().download(to: "\(world.target)-\(number)")
                return try #require(
                    world.client.sendUnauthenticatedRequest(download, completion: told.completion))
            }
            for task in tasks { await task.received(5) }
            for task in tasks { task.suspend() }

            // The connections are the same ones: by this transport, to this origin.
            let assent = try await ResourceWorld().assent([:]) {
                $0.server = world.server.origin + "/am"
                $0.transport = world.transport
            }
            try await assent.journey("Login") { _ in .next }
            #expect(try await assent.user()?.session?.token == Secret("SESS"))
            #expect(world.server.seen.heads.last?.contains("/authenticate") == true)
            #expect(tasks.allSatisfy { $0.state == .suspended } && told.allSatisfy { $0.count == 0 })

            for peer in world.server.seen.peers.prefix(8) { peer.send("world") }
            for task in tasks {
                task.resume()
                await task.ended()
            }
            #expect(told.allSatisfy { $0.count == 1 && $0.error == nil && $0.response?.status == 200 })
            #expect(world.files.count == 8)
        }
    }

    @Test("Of seventeen suspended calls with a connection one goes on")
    func seventeen() async throws {
        try await TaskWorld.run { _, _, peer in
            peer.send(Self.head + "\r\nhello")
        } _: { world in
            var tasks: [NetworkTask] = []
            for _ in 0..<17 {
                let task = try world.start(world.request(), Told())
                await task.received(5)
                task.suspend()
                tasks.append(task)
            }
            while !tasks.contains(where: { $0.state == .running }) { await Task.yield() }
            #expect(tasks.count { $0.state == .running } == 1)
            for task in tasks { task.cancel() }
            for task in tasks { await task.ended() }
        }
    }
}
