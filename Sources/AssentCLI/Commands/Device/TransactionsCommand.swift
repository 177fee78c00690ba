import ArgumentParser
import Assent
import AssentSigning
import Foundation

/// `assent transactions`
struct TransactionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transactions",
        abstract: "The transactions that this profile's enrolled device is asked to sign: list, show, answer.",
        discussion: """
            The device is enrolled with 'assent device enroll'. The signature covers all that is shown.

            Example:  assent transactions list
                      assent transactions approve ID

            An answer whose receipt was lost is sent again by the next command, which says what became of it.

            Exit status: 0 done, 1 failed, 2 refused by the server, declined by you, or nothing is open, 3 the outcome is \
            unknown, 64 wrong usage.
            """,
        subcommands: [List.self, Show.self, Approve.self, Decline.self, Report.self, Cancel.self, Sign.self])

    /// `assent transactions list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the open transactions, the oldest first of each container.",
            discussion: "With --json, one object a line, with everything that 'show' says.")

        @Option(
            name: .long, parsing: .unconditional,
            help: "Only those of this container, by its id in 'assent device list'.")
        var container: String?

        @Option(name: .long, help: "Wait so many seconds for one, at most 25, when none is open.")
        var wait = 0

        @Flag(name: .long, help: "Print the result as JSON, one object a line.")
        var json = false

        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard (0...25).contains(wait) else { throw ValidationError("--wait is from 0 to 25 seconds.") }
        }

        func run() async throws {
            let console = Console(json: json)
            try await SigningProfile.run(client, console) { profile in
                for receipt in await profile.sendQueued(console) { console.warn(receipt.line) }
                var count = 0
                let containers = try await profile.containers(container)
                for container in containers {
                    for id in try await container.transactionIDs(wait: containers.count == 1 ? wait : 0) {
                        guard let transaction = try await open(id, container, profile) else { continue }
                        count += 1
                        show(transaction, console)
                    }
                }
                if count == 0, !json { console.say("No transaction is open.") }
            }
        }

        /// Fetches what a listed id names; `nil` when it is over by now.
        private func open(
            _ id: String, _ container: SigningContainer, _ profile: SigningProfile
        ) async throws -> SigningTransaction? {
            do {
                return try await profile.device.retrieveTransactionInfo(id, user: container.userID).transaction()
            } catch let error as SigningError where error.code.endsTransaction {
                return nil
            }
        }

        private func show(_ transaction: SigningTransaction, _ console: Console) {
            guard !json else { return console.emit(transaction.json) }
            let seconds = transaction.remaining().components.seconds
            let from = DisplayText.escapedForTerminal(transaction.displayed.relyingParty)
            let title = DisplayText.escapedForTerminal(transaction.displayed.title)
            console.say("\(transaction.id)  \(console.styled("\(seconds) s", .dim))  \(from): \(title)")
        }
    }

    /// `assent transactions show`
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show a transaction: everything that a signature about it covers.")

        @OptionGroup var choice: TransactionChoice

        func run() async throws {
            try await choice.run { info, _, console in
                let transaction = try await info.transaction()
                guard !choice.json else { return console.emit(transaction.json) }
                TerminalDecision(console: console).show(transaction)
                console.say()
                for status in transaction.allowedStatuses {
                    let label = DisplayText.escapedForTerminal(status.label)
                    console.say("  \(console.styled(status.name, .cyan))  \(label)")
                }
                console.say(TerminalDecision.open(for: transaction.remaining()))
            }
        }
    }

    /// `assent transactions approve`
    struct Approve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "approve",
            abstract: "Show a transaction, ask whether it is right, and sign the approval.",
            discussion: """
                The question is answered at the terminal, or with a line of standard input. There is no option that answers it: \
                the signature says that these texts were shown.
                """)

        @OptionGroup var choice: TransactionChoice

        @Option(name: .long, help: "The two digits that the page shows, if it shows some; otherwise you are asked.")
        var number: String?

        @Option(name: .long, help: "Which approval, by its name, where the transaction has several.")
        var status: String?

        @Option(name: .long, help: "Why, where the transaction takes a reason.")
        var reason: String?

        func run() async throws {
            try await choice.run(to: .approve) { info, profile, console in
                let transaction = try await info.transaction()
                let decision = TerminalDecision(console: console)
                decision.show(transaction)
                console.say(TerminalDecision.open(for: transaction.remaining()))
                let status = try chosen(transaction)
                let answers = [status.label, "Do nothing now"]
                guard try decision.prompt.choice("Sign?", answers, default: nil) == 0 else {
                    throw CommandFailure("Nothing was signed.", status: .refused)
                }
                let receipt = try await profile.outcome(of: transaction.id, to: status.effect, console) {
                    try await decision.sign(transaction, status, number: number, reason: reason)
                }
                receipt.show(on: console)
            }
        }

        private func chosen(_ transaction: SigningTransaction) throws -> SigningTransaction.Status {
            let approving = transaction.allowedStatuses.filter { $0.effect == .approve }
            if let status {
                guard let found = approving.first(where: { $0.name == status }) else {
                    throw CommandFailure(
                        "The transaction has no approval with the name \(DisplayText.escapedForTerminal(status)). "
                            + "It has: \(approving.map(\.name).joined(separator: ", "))")
                }
                return found
            }
            guard let only = approving.first, approving.count == 1 else {
                throw CommandFailure(
                    "There are several ways to approve; name one with --status: "
                        + approving.map(\.name).joined(separator: ", "))
            }
            return only
        }
    }

    /// `assent transactions decline`
    struct Decline: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "decline",
            abstract: "Decline a transaction, without opening it.",
            discussion: "No PIN is needed to say no, and the document is not fetched.")

        @OptionGroup var refusal: Refusal

        func run() async throws { try await refusal.run(to: .deny) { try await $0.deny(reason: $1) } }
    }

    /// `assent transactions report`
    struct Report: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "report",
            abstract: "Decline a transaction that you did not ask for, and report it, without opening it.")

        @OptionGroup var refusal: Refusal

        func run() async throws { try await refusal.run(to: .report) { try await $0.report(reason: $1) } }
    }

    /// `assent transactions cancel`
    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cancel",
            abstract: "Give a transaction up, neither approved nor declined, where it allows that.")

        @OptionGroup var refusal: Refusal

        func run() async throws {
            try await refusal.run(to: .cancel) { info, reason in
                let transaction = try await info.transaction()
                guard transaction.isCancelable else {
                    throw CommandFailure(
                        "This transaction cannot be canceled. Decline it: assent transactions decline",
                        status: .refused)
                }
                return try await transaction.cancel(.userCancel, reason: reason)
            }
        }
    }

    /// Which transaction is not approved, and why.
    struct Refusal: ParsableArguments {
        @OptionGroup var choice: TransactionChoice

        @Option(name: .long, help: "Why, at most 200 characters, where the transaction takes a reason.")
        var reason: String?

        /// Sends what `answer` makes of it, and prints what the server says.
        func run(
            to effect: DecisionEffect,
            _ answer: (SigningTransactionInfo, _ reason: String?) async throws -> SigningReceipt
        ) async throws {
            try await choice.run(to: effect) { info, profile, console in
                let receipt = try await profile.outcome(of: info.transactionID, to: effect, console) {
                    try await answer(info, reason)
                }
                receipt.show(on: console)
            }
        }
    }
}
