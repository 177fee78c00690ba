import ArgumentParser

/// The one container that a command is about.
struct ContainerID: ParsableArguments {
    @Argument(help: "The container's id, as the lists have it; behind '--' where it begins with a hyphen.")
    var id: String?

    // An id may begin with a hyphen.
    @Option(name: .long, parsing: .unconditional, help: "The same, as an option.")
    var container: String?

    func validate() throws {
        guard (id == nil) != (container == nil) else { throw ValidationError("Name one container, by its id.") }
    }

    var value: String { id ?? container ?? "" }
}

/// The container that a command is about, where the device has several.
struct ContainerOption: ParsableArguments {
    // An id may begin with a hyphen.
    @Option(
        name: .customLong("container"), parsing: .unconditional,
        help: "The container's id in 'assent device list', where there are several.")
    var id: String?
}
