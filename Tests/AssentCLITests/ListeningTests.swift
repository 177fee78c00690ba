import Assent
import Testing

@testable import AssentCLI

@Suite("Listening for transactions goes on after what goes wrong")
struct ListeningTests {
    /// What the server gives, one step after the other, however often somebody begins anew.
    private struct Script: AsyncSequence {
        typealias Element = String

        let steps: Locked<[Result<String, any Error>]>

        struct Iterator: AsyncIteratorProtocol {
            let steps: Locked<[Result<String, any Error>]>

            func next() async throws -> String? {
                let step = steps.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                return try step?.get()
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(steps: steps) }
    }

    /// What came of it.
    private struct Course {
        var begun = 0
        var answered: [String] = []
        var pauses: [Int64] = []
        var said: [String] = []
        var error: (any Error)?

        var code: SigningError.Code? { (error as? SigningError)?.code }
    }

    /// Listens to the end.
    ///
    /// - Parameters:
    ///   - steps: what the server gives.
    ///   - failures: what goes wrong with the first answer to a transaction, by its name.
    ///   - away: how often the server does not answer when it is asked again.
    ///   - cancelled: the pause in which the task is cancelled.
    ///   - once: whether it ends after the first transaction.
    /// - Returns: what came of it.
    private func listen(
        _ steps: [Result<String, any Error>], failures: [String: any Error] = [:], away: Int = 0,
        cancelled: Int? = nil, once: Bool = false
    ) async -> Course {
        let script = Script(steps: Locked(steps))
        var course = Course()
        var (failures, away) = (failures, away)
        let listening = Listening<Script>(
            transactions: {
                course.begun += 1
                return script
            },
            answer: { name in
                if let error = failures.removeValue(forKey: name) { throw error }
                course.answered.append(name)
            },
            reconnect: {
                away -= 1
                if away >= 0 { throw SigningError(.remote) }
            },
            warn: { course.said.append($0) },
            pause: { duration in
                course.pauses.append(duration.components.seconds)
                if course.pauses.count == cancelled { throw CancellationError() }
            }, once: once)
        do {
            try await listening.run()
        } catch {
            course.error = error
        }
        return course
    }

    @Test("While the server is away it is asked after pauses that grow to a minute; then the next transaction is asked")
    func away() async {
        let lost = SigningError(.remote)
        let steps: [Result<String, any Error>] = [
            .success("a"), .failure(lost), .success("b"), .failure(lost), .success("c"),
        ]
        let course = await listen(steps, away: 8)
        #expect(course.answered == ["a", "b", "c"] && course.begun == 3 && course.error == nil)
        // The second time it begins with the shortest one again.
        #expect(course.pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60, 1])
        #expect(course.said.first?.contains("[remote]") == true, "\(course.said)")
        #expect(course.said.last == "The server answers again.")
    }

    @Test("A connection that is lost with an answer is waited for, too, and what is open is shown again")
    func lostAnswer() async {
        let course = await listen(
            [.success("a"), .success("a")], failures: ["a": SigningError(.unavailable)], away: 1)
        #expect(course.answered == ["a"] && course.begun == 2 && course.pauses == [1, 2])
        #expect(course.said.first?.contains("[unavailable]") == true, "\(course.said)")
    }

    @Test(
        "What goes wrong with one transaction is said, and the next one is asked",
        arguments: [
            SigningError.Code.transactionExpired, .alreadyDecided, .matchWrong, .invalidArgument, .wrongPassword,
        ])
    func oneOfThem(_ code: SigningError.Code) async {
        let course = await listen([.success("a"), .success("b")], failures: ["a": SigningError(code)])
        #expect(course.answered == ["b"] && course.begun == 2 && course.pauses == [1] && course.error == nil)
        #expect(course.said.first?.contains("[\(code)]") == true, "\(course.said)")
    }

    @Test("So is an answer that is none")
    func noAnswer() async {
        let course = await listen(
            [.success("a"), .success("a")], failures: ["a": CommandFailure("It was not answered.")])
        #expect(course.answered == ["a"] && course.begun == 2 && course.said == ["It was not answered."])
    }

    @Test("A document that breaks a rule is not asked for again: it is not in the way of those behind it")
    func refusedDocument() async {
        let course = await listen([.failure(SigningError(.documentRefused)), .success("b")])
        #expect(course.answered == ["b"] && course.begun == 1 && course.pauses.isEmpty)
        #expect(course.said.count == 1 && course.said.first?.contains("[documentRefused]") == true)
    }

    @Test(
        "What does not mend ends it, whether it is heard while waiting or with an answer",
        arguments: [SigningError.Code.containerRevoked, .credentialsLost, .unknownContainer, .passwordDestroyed])
    func lasting(_ code: SigningError.Code) async {
        let waiting = await listen([.failure(SigningError(code)), .success("b")])
        #expect(waiting.code == code && waiting.answered.isEmpty && waiting.pauses.isEmpty)
        let answering = await listen([.success("a"), .success("b")], failures: ["a": SigningError(code)])
        #expect(answering.code == code && answering.answered.isEmpty && answering.begun == 1)
    }

    @Test("A wrong password for reading the list ends it, and so does an answer that nobody is there to give")
    func nobody() async {
        #expect(await listen([.failure(SigningError(.wrongPassword)), .success("b")]).code == .wrongPassword)
        let silent = await listen(
            [.success("a"), .success("b")], failures: ["a": Prompt.NoTerminal(question: "Your answer")])
        #expect(silent.error is Prompt.NoTerminal && silent.answered.isEmpty)
    }

    @Test("Whoever wants one transaction gets one, or its error")
    func once() async {
        let good = await listen([.failure(SigningError(.remote)), .success("a"), .success("b")], once: true)
        #expect(good.answered == ["a"] && good.error == nil)
        for code in [SigningError.Code.transactionExpired, .remote] {
            let bad = await listen([.success("a"), .success("b")], failures: ["a": SigningError(code)], once: true)
            #expect(bad.code == code && bad.answered.isEmpty && bad.pauses.isEmpty)
        }
    }

    @Test("Whoever cancels it does not wait for the end of a pause")
    func cancelled() async {
        let course = await listen([.failure(SigningError(.remote)), .success("a")], away: 100, cancelled: 3)
        #expect(course.error is CancellationError && course.pauses == [1, 2, 4] && course.answered.isEmpty)
    }
}
