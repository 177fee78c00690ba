import ArgumentParser
import Assent
import AssentSigning

/// Which transaction a command is about, and where it speaks.
struct TransactionChoice: ParsableArguments {
    @Argument(
        help:
            "The transaction: its id in the list, behind '--' where it begins with a hyphen, or the text of a push message; otherwise the only open one."
    )
    var id: String?

    // An id may begin with a hyphen.
    @Option(name: .customLong("transaction"), parsing: .unconditional, help: "The same, as an option.")
    var option: String?

    @OptionGroup var container: ContainerOption

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    @OptionGroup var client: ClientOptions

    private var transaction: String? { id ?? option }

    func validate() throws {
        guard id == nil || option == nil else { throw ValidationError("Name the transaction once.") }
    }

    /// Runs `work` with what the id says; nothing was fetched for it. An earlier answer whose receipt was lost is sent
    /// again first, and its outcome shown; of other transactions' answers a warning tells it. `effect` is what `work`
    /// does about the transaction; `nil` means that it only looks.
    ///
    /// - Throws: `ExitCode`, after the reason was written.
    func run(
        to effect: DecisionEffect? = nil, _ work: (SigningTransactionInfo, SigningProfile, Console) async throws -> Void
    ) async throws {
        let console = Console(json: json)
        try await SigningProfile.run(client, console) { profile in
            let named = try await named(profile)
            let receipts = await profile.sendQueued(console)
            let heard = LostReceipt<SigningReceipt>.chosen(from: receipts, named: named, id: \.transactionID)
            for other in heard.others { console.warn(other.line) }
            if let receipt = heard.own {
                receipt.show(on: console)
                guard effect == nil || receipt.effect == effect else {
                    throw CommandFailure.answered(receipt.transactionID)
                }
                return
            }
            try await work(try await find(profile), profile, console)
        }
    }

    /// What a push message says; `nil` where something else, or nothing, was given.
    private func pushed(_ profile: SigningProfile) async throws -> SigningTransactionInfo? {
        // An id has no dot, a signed one has two.
        guard let transaction, transaction.utf8.contains(UInt8(ascii: ".")) else { return nil }
        return try await profile.device.retrieveTransactionInfo(transaction)
    }

    /// The id that was given, or that a push message names.
    private func named(_ profile: SigningProfile) async throws -> String? {
        try await pushed(profile)?.transactionID ?? transaction
    }

    private func find(_ profile: SigningProfile) async throws -> SigningTransactionInfo {
        if let pushed = try await pushed(profile) { return pushed }
        var open: [SigningTransactionInfo] = []
        for container in try await profile.containers(container.id) {
            for id in try await container.transactionIDs() {
                open.append(try await profile.device.retrieveTransactionInfo(id, user: container.userID))
            }
        }
        if let transaction {
            guard let found = open.first(where: { $0.transactionID.utf8.elementsEqual(transaction.utf8) }) else {
                throw CommandFailure(
                    "No open transaction has the id \(DisplayText.escapedForTerminal(transaction)). It may have "
                        + "ended, or be for another device. See: assent transactions list", status: .refused)
            }
            return found
        }
        guard let only = open.first else { throw CommandFailure("No transaction is open.", status: .refused) }
        guard open.count == 1 else {
            throw CommandFailure(
                "There are \(open.count) open transactions; name one with --transaction. See: assent transactions list")
        }
        return only
    }
}

extension SigningProfile {
    /// The container with this id, or all that there are.
    func containers(_ id: String?) async throws -> [SigningContainer] {
        if let id { return [try await device.container(id)] }
        let all = try await device.containers()
        guard !all.isEmpty else {
            throw CommandFailure("This device is not enrolled. Enrol it: assent device enroll.")
        }
        return all
    }
}
