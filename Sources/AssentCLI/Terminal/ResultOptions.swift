import ArgumentParser

/// How a command prints its result.
struct ResultOptions: ParsableArguments {
    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    /// Where the command speaks.
    var console: Console { Console(json: json) }
}
