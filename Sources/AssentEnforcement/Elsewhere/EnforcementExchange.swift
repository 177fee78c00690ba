package import AssentCore
import Foundation

/// The content of a request that the engine may want to know of.
package protocol EnforcedContent: Sendable {
    /// Whether it can be read whatever the policies say.
    var isShort: Bool { get }

    /// Reads it whole.
    ///
    /// - Throws: why it cannot be had.
    func bytes() async throws -> [UInt8]

    /// Reads it whole and checks that it can be bound.
    ///
    /// - Throws: what is wrong with it.
    func checked() async throws -> [UInt8]

    /// Checks that content of this request that was read can be bound.
    ///
    /// - Throws: what is wrong with it.
    func check(_ bytes: [UInt8]) throws

    /// What is wrong with content of more than `limit` bytes.
    func tooLarge(_ limit: Int) -> any Error
}

/// One question with what the engine wants to know of the content: it is asked twice at most.
package struct EnforcementExchange: Sendable {
    /// Who is asked.
    package let engine: EnforcementClient

    /// The question, as it was asked last.
    package private(set) var question: EnforcementQuestion

    /// The content, once it was read.
    package private(set) var bytes: [UInt8]?

    private let content: any EnforcedContent

    /// Whether a reply was lost, so that a question was asked again.
    private var isRepeated = false

    /// A question about a request with this content.
    package init(_ engine: EnforcementClient, _ question: EnforcementQuestion, content: any EnforcedContent) {
        self.engine = engine
        self.question = question
        self.content = content
    }

    /// What the engine says.
    ///
    /// - Parameters:
    ///   - clock: tells for how long a question may still be on its way.
    ///   - report: takes what the engine must hear: that nothing is forwarded, where a question has taken the
    ///     transaction, or will yet, and nothing is let through.
    /// - Returns: what it has decided.
    /// - Throws: ``EnforcementError``, and what the content throws. Nothing is let through then.
    package mutating func answer(
        at clock: any WallClock, reporting report: @Sendable (OutcomeReports.Report) async -> Void
    ) async throws -> EnforcementAnswer {
        let answer: EnforcementAnswer
        do {
            answer = try await wholeAnswer()
        } catch {
            let mayHaveActed = (error as? EnforcementError)?.mayHaveActed ?? false
            if isRepeated || mayHaveActed, let open = notForwarded(at: clock.now) { await report(open) }
            throw error
        }
        if leavesTransactionOpen(answer), let open = notForwarded(at: clock.now) { await report(open) }
        return answer
    }

    private mutating func wholeAnswer() async throws -> EnforcementAnswer {
        // Short content beside a transaction is most likely what was approved, and saves a question.
        if question.transaction != nil, content.isShort, !question.credentials.isEmpty {
            let read = try await content.bytes()
            bytes = read
            question.content = .digest(SHA2.sha256(read))
        }
        let answer = try await ask()
        guard case .needBody(let form, let limit) = answer else { return answer }
        let read: [UInt8]
        if let bytes {
            try content.check(bytes)
            read = bytes
        } else {
            read = try await content.checked()
        }
        bytes = read
        guard form == .digest || read.count <= limit else { throw content.tooLarge(limit) }
        question.content = form == .whole ? .whole(read) : .digest(SHA2.sha256(read))
        return try await ask()
    }

    private mutating func ask() async throws -> EnforcementAnswer {
        let asked = await engine.decide(question)
        isRepeated = isRepeated || asked.isRepeated
        return try asked.answer.get()
    }

    /// Whether a question whose reply was lost may have taken the transaction, though this answer to the same question
    /// lets nothing through. Where another request has taken it, the engine does not record what it is told.
    private func leavesTransactionOpen(_ answer: EnforcementAnswer) -> Bool {
        guard isRepeated, question.transaction != nil else { return false }
        return switch answer {
        case .advised, .denied, .refused, .alreadyTaken: true
        case .granted, .needBody: false
        }
    }

    /// That nothing was forwarded, whether a question took the transaction or will yet; `nil` without one.
    private func notForwarded(at now: Date) -> OutcomeReports.Report? {
        guard let transaction = question.transaction else { return nil }
        let statement = OutcomeStatement(
            transaction: transaction, attempt: question.attempt, outcome: .notForwarded)
        return OutcomeReports.Report(
            statement, to: engine,
            mayBeEarly: WaitingTime(TimeInterval(EnforcementBounds.repetitionSeconds), from: now))
    }
}

extension EnforcementError {
    /// Whether the engine may have taken a transaction although no usable answer came.
    package var mayHaveActed: Bool { code == .outcomeUnknown || code == .malformedReply }
}
